"""The OpenAPI document and a real server agree: whatever is sent, allowed or not, is answered as the document says.

schemathesis is the judge: it makes requests out of the document, good ones and bad ones, and compares the answers.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.postgres import fresh_database
from tests.serving import Served, scheduler_token, serving

pytestmark = pytest.mark.slow

EXAMPLES = 6
NOT_JUDGED = (
    "positive_data_acceptance",  # what fits its schema may still mean nothing, such as a workflow with a cycle
    "ignored_auth",  # who shows many wrong tokens gets 429 instead of 401; that all are refused is tested elsewhere
)
# What is too large for its schema may be too large to be looked at.
REFUSALS = "[checks.negative_data_rejection]\nexpected-statuses = [400, 401, 404, 405, 409, 413, 415, 422, 431]\n"
OBJECTS = "^/api/v1/objects"
ENDLESS = "^/api/v1/events$"  # a stream that never ends
WORKFLOW = """
name: flow
schedule: "0 2 * * *"
params: {n: {type: int, default: 2}, event: {default: null}}
tasks:
  extract: {command: [sh, -c, 'echo words; echo 7']}
  ask: {approval: Is it good?, depends_on: [extract]}
"""


class Contract(NamedTuple):
    """A server, and the token of a scheduler, which alone may use the documents of attempts."""

    served: Served
    scheduler_token: str


@pytest.fixture(params=["sqlite", "postgres"])
def contract(
    request: pytest.FixtureRequest, tmp_path: Path, plain_environment: dict[str, str], ork_cli: Callable[..., object]
) -> Iterator[Contract]:
    """A server whose workflow has one run that ended and one that waits."""
    (tmp_path / "flow.yaml").write_text(WORKFLOW)
    with ExitStack() as stack:
        env = dict(plain_environment)
        if request.param == "postgres":
            env["ORK_STORE"] = stack.enter_context(fresh_database())
        ork_cli("deploy", "flow.yaml", cwd=tmp_path, env=env)
        for _ in range(2):
            ork_cli("trigger", "flow", cwd=tmp_path, env=env)
        ork_cli("cancel", "@last", cwd=tmp_path, env=env)
        yield Contract(stack.enter_context(serving(tmp_path, env)), scheduler_token(tmp_path, env))


def test_whatever_is_sent_is_answered_as_the_document_says(contract: Contract, tmp_path: Path) -> None:
    served = contract.served
    status, document = served.ask("GET", "/openapi.json")
    assert status == 200
    (tmp_path / "openapi.json").write_text(json.dumps(document))
    (tmp_path / "schemathesis.toml").write_text(REFUSALS)
    tested = judge(served, contract.scheduler_token, tmp_path, "--include-path-regex", OBJECTS)
    tested += judge(served, served.token, tmp_path, "--exclude-path-regex", f"{OBJECTS}|{ENDLESS}")
    operations = sum(len(methods) for methods in document["paths"].values())
    assert tested == operations - 1
    assert served.ask("GET", "/runs")[0] == 200


def judge(served: Served, token: str, folder: Path, *paths: str) -> int:
    """The number of operations that were tested with this token."""
    judged = subprocess.run(
        [
            Path(sys.executable).parent / "schemathesis", "run", folder / "openapi.json", "--url", served.url,
            "--header", f"Authorization: Bearer {token}", *paths,
            "--exclude-checks", ",".join(NOT_JUDGED), "--mode", "all", "--phases", "examples,coverage,fuzzing",
            "--max-examples", str(EXAMPLES), "--seed", "1", "--generation-deterministic",
            "--no-color",
        ],
        cwd=folder, capture_output=True, text=True, timeout=600,
    )  # fmt: skip
    assert judged.returncode == 0, judged.stdout.partition("= FAILURES =")[2][:20_000] + judged.stderr
    tested = re.search(r"Tested: (\d+)", judged.stdout)
    assert tested is not None, judged.stdout[-3000:]
    return int(tested[1])
