"""`ork mcp` and `ork serve --mcp`, with the official client: what an assistant sees, and that it changes nothing unasked."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from tests.serving import serving

mcp = pytest.importorskip("mcp")

pytestmark = pytest.mark.slow

READS = {
    "overview", "list_workflows", "show_workflow", "list_runs", "show_run", "list_tasks", "why", "read_log", "search_logs",
    "read_output", "compare_with_last_success", "status", "explain_code",
}  # fmt: skip
CHANGES = {"validate", "trigger", "retry", "cancel"}
FLOW = """
name: sums
params: {number: {type: int, default: 1}}
tasks:
  add: {executor: python, file: sums.py, function: add, inputs: {number: {ref: params.number}}}
"""
CODE = """
def add(number):
    print("adding", number)
    if number == 13:
        raise ValueError("unlucky")
    return {"sum": number + 1}
"""


def ork(folder: Path, environment: dict[str, str], *args: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "ork", *args], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "workflow.yaml").write_text(FLOW)
    (tmp_path / "sums.py").write_text(CODE)
    ork(tmp_path, dict(os.environ), "deploy", "workflow.yaml")
    return tmp_path


def talk(work: Callable[[Any], Coroutine[Any, Any, None]], server: Any, ask: Any = None) -> None:
    async def whole() -> None:
        async with mcp.Client(server, elicitation_callback=ask) as client:
            await work(client)

    asyncio.run(asyncio.wait_for(whole(), 120))


def over_pipes(folder: Path, *args: str, **variables: str) -> Any:
    environment = {**os.environ, **variables}
    return mcp.StdioServerParameters(
        command=sys.executable, args=["-m", "ork", "mcp", *args], cwd=str(folder), env=environment
    )


async def call(client: Any, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content[0].text
    return json.loads(answer.content[0].text)


async def refusal(client: Any, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error, answer.content[0].text
    return str(answer.content[0].text)


async def ended(client: Any, run: str) -> dict[str, Any]:
    while True:
        found: dict[str, Any] = (await call(client, "show_run", run=run))["run"]
        if found["status"] in ("success", "failed", "cancelled"):
            return found
        await asyncio.sleep(0.05)


def test_without_elicitation_a_change_takes_a_second_call_with_its_code(project: Path) -> None:
    async def work(client: Any) -> None:
        asked = await call(client, "trigger", workflow="sums", params={"number": 13})
        assert asked["done"] is False
        assert asked["would"] == 'Start a run of sums with {"number": 13}'
        assert (await call(client, "list_runs")).get("runs") is None
        other = await call(client, "trigger", workflow="sums", params={"number": 14}, confirm=asked["confirm"])
        assert other["done"] is False, "the code is for the first call only"
        done = await call(client, "trigger", workflow="sums", params={"number": 13}, confirm=asked["confirm"])
        run = done["answer"]["id"]
        assert "this process does the work" in done["note"]
        assert (await ended(client, run))["status"] == "failed"
        assert "unlucky" in str(await call(client, "why", run=run, task="add"))
        assert (await call(client, "read_log", run="@last", task="add"))["log"].startswith("adding 13")
        assert (await call(client, "search_logs", run=run, text="ADDING 13"))["total"] == 1

    talk(work, over_pipes(project))


def test_a_client_that_can_ask_its_user_asks_once(project: Path) -> None:
    questions: list[str] = []

    async def agree(_context: Any, request: Any) -> Any:
        questions.append(request.message)
        return mcp.types.ElicitResult(action="accept", content={"proceed": True})

    async def work(client: Any) -> None:
        done = await call(client, "trigger", workflow="sums")
        assert (await ended(client, done["answer"]["id"]))["status"] == "success"
        shown = await call(client, "read_output", run="@last", task="add")
        assert shown["keys"][0]["value"] == 2

    talk(work, over_pipes(project), agree)
    assert questions == ["Start a run of sums?"]


def test_a_user_who_declines_changes_nothing(project: Path) -> None:
    async def decline(_context: Any, _request: Any) -> Any:
        return mcp.types.ElicitResult(action="decline")

    async def work(client: Any) -> None:
        await refusal(client, "trigger", workflow="sums")
        assert (await call(client, "list_runs")).get("runs") is None

    talk(work, over_pipes(project), decline)


def test_read_only_offers_no_change(project: Path) -> None:
    async def work(client: Any) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == READS
        await refusal(client, "trigger", workflow="sums")

    talk(work, over_pipes(project, "--read-only"))


def test_validate_shows_all_errors_with_their_places(project: Path) -> None:
    async def work(client: Any) -> None:
        assert {tool.name for tool in (await client.list_tools()).tools} == READS | CHANGES
        assert (await call(client, "validate", definition=FLOW))["tasks"] == ["add"]
        said = await refusal(client, "validate", definition="name: x\ntasks:\n  a: {file: no.py}\n  b: {fil: x}\n")
        assert "workflow.yaml:3:" in said
        assert "workflow.yaml:4:" in said
        assert "there is no file `no.py`" in said
        assert "no run `zzzz`" in await refusal(client, "show_run", run="zzzz")

    talk(work, over_pipes(project))


def test_over_http_the_token_decides(project: Path) -> None:
    environment = dict(os.environ)
    with serving(project, environment, "--mcp") as server:
        viewer = ork(project, environment, "token", "create", "--name", "reader", "--role", "viewer").split()[-1]

        def to(token: str) -> Any:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            headers = {"Authorization": f"Bearer {token}"}
            return streamable_http_client(
                f"{server.url}/mcp", http_client=httpx2.AsyncClient(headers=headers, timeout=60)
            )

        async def reads(client: Any) -> None:
            assert {tool.name for tool in (await client.list_tools()).tools} == READS
            await refusal(client, "trigger", workflow="sums")

        async def changes(client: Any) -> None:
            asked = await call(client, "trigger", workflow="sums")
            done = await call(client, "trigger", workflow="sums", confirm=asked["confirm"])
            assert (await ended(client, done["answer"]["id"]))["status"] == "success"

        async def agree(_context: Any, _request: Any) -> Any:
            return mcp.types.ElicitResult(action="accept", content={"proceed": True})

        async def asks(client: Any) -> None:
            assert (await call(client, "trigger", workflow="sums"))["done"] is True

        talk(reads, to(viewer))
        talk(changes, to(server.token))
        talk(asks, to(server.token), agree)
        talk(reads, over_pipes(project, ORK_SERVER=server.url, ORK_TOKEN=viewer))
        connection = server.connect()
        connection.request("POST", "/mcp", "{}", {"Content-Type": "application/json"})
        assert connection.getresponse().status == 401


def test_a_server_without_the_option_says_how_to_start_it(project: Path) -> None:
    with serving(project, dict(os.environ)) as server:
        connection = server.connect()
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {server.token}"}
        connection.request("POST", "/mcp", "{}", headers)
        answer = connection.getresponse()
        assert (answer.status, "ork serve --mcp" in answer.read().decode()) == (404, True)
