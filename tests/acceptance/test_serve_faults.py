"""`ork serve` when something goes wrong, on SQLite and on Postgres: killed, doubled, started twice on one port, restarted
under those who listen."""

from __future__ import annotations

import json
import signal
import socket
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPResponse
from typing import Any

import pytest

from tests.acceptance.conftest import HELD, Place
from tests.acceptance.waiting import wait_until
from tests.serving import Served, start_ork

pytestmark = pytest.mark.slow


def test_what_a_killed_server_was_doing_goes_on_and_the_next_one_takes_it(place: Place) -> None:
    first = place.serve()
    run = place.begin()
    first.process.send_signal(signal.SIGKILL)
    first.process.wait()
    second = place.serve()
    place.finish(run)
    assert second.ask("GET", f"/runs/{run}")[1]["status"] == "success"


def test_of_several_on_one_store_any_answers_and_any_may_be_killed(place: Place) -> None:
    """Two that do both, one that only answers, one that only works."""
    servers = [place.serve(), place.serve("--no-scheduler"), place.serve()]
    worker = place.serve("--no-api")
    assert worker.url == ""
    run = place.begin()
    assert {server.ask("GET", f"/runs/{run}")[1]["status"] for server in servers} == {"running"}
    assert len([one for one in servers[1].ask("GET", "/schedulers")[1]["schedulers"] if one["alive"]]) == 3
    servers[0].process.kill()
    worker.stop()
    assert servers[1].ask("POST", f"/runs/{run}/pause")[0] == 202
    wait_until(lambda: servers[2].ask("GET", f"/runs/{run}")[1]["status"] == "paused")
    assert servers[1].ask("POST", f"/runs/{run}/resume")[0] == 202
    place.finish(run)


def test_twenty_equal_triggers_at_two_servers_with_one_key_make_one_run(place: Place) -> None:
    servers = [place.serve("--no-scheduler") for _ in range(2)]
    place.ork("deploy", "held.yaml")
    key = {"Idempotency-Key": "one"}
    with ThreadPoolExecutor(20) as pool:
        asked = [
            pool.submit(servers[number % 2].ask, "POST", "/workflows/held/runs", {"params": {"n": 3}}, **key)
            for number in range(20)
        ]
        answers = [each.result() for each in asked]
    assert len({answer["id"] for _, answer in answers}) == 1
    assert sorted(status for status, _ in answers) == [200] * 19 + [201]
    status, refused = servers[1].ask("POST", "/workflows/held/runs", {"params": {"n": 4}}, **key)
    assert (status, "another body" in refused["detail"]) == (409, True)
    assert len(servers[0].ask("GET", "/runs")[1]["runs"]) == 1


def test_who_listens_goes_on_behind_its_mark_at_the_next_server(place: Place) -> None:
    first = place.serve()
    place.ork("deploy", "held.yaml")
    stream = Stream(first)
    mark = stream.until("ready")["id"]
    first.stop()
    assert stream.is_over()
    run = place.ork("trigger", "held").split()[0]
    second = place.serve()
    resumed = Stream(second, {"Last-Event-ID": mark})
    assert resumed.until("ready")["id"] == mark
    assert resumed.until("run")["data"]["run"]["id"] == run
    wait_until(lambda: (place.folder / "ledger").exists())
    place.finish(run)
    while resumed.until("run")["data"]["run"]["status"] != "success":
        pass


def test_who_follows_a_log_goes_on_behind_its_place_at_the_next_server(place: Place) -> None:
    (place.folder / "held.yaml").write_text(HELD.replace("echo begun >> ledger", "echo 1; echo begun >> ledger"))
    first = place.serve()
    run = place.begin()
    path = f"/runs/{run}/tasks/a/0/attempts/1/log?follow"
    stream = Stream(first, path=path)
    heard = stream.until("log")
    assert heard["data"]["text"] == "1\n"
    first.stop()
    assert stream.is_over()
    second = place.serve()
    resumed = Stream(second, {"Last-Event-ID": heard["id"]}, path)
    (place.folder / "go").touch()
    assert resumed.until("log")["data"]["text"] == "7\n"
    assert resumed.until("end")["data"]["status"] == "success"


def test_a_port_that_is_taken_is_a_plain_refusal_and_hurts_nobody(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        said = place.ork("serve", "--port", port, code=4)
        assert f"cannot listen on 127.0.0.1:{port}" in said
        assert "Traceback" not in said
    assert place.serve().ask("GET", "/schedulers")[1]["schedulers"][0]["alive"]


def test_two_signals_at_once_end_a_server_that_has_not_begun(place: Place) -> None:
    process = start_ork(place.folder, place.environment, "serve", "--port", "0")
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said


class Stream:
    """Server-sent events of one request."""

    def __init__(self, served: Served, headers: dict[str, str] | None = None, path: str = "/events") -> None:
        self._connection = served.connect()
        given = {"Authorization": f"Bearer {served.token}", **(headers or {})}
        self._connection.request("GET", f"/api/v1{path}", headers=given)
        self._answer: HTTPResponse = self._connection.getresponse()
        assert self._answer.status == 200

    def until(self, kind: str) -> dict[str, Any]:
        event: dict[str, Any] = {}
        while line := self._answer.readline().decode():
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                event[name] = value
            elif event.get("event") == kind:
                return {**event, "data": json.loads(event["data"])}
            else:
                event = {}
        raise EOFError(kind)

    def is_over(self) -> bool:
        """Whether the server ended it as streams end."""
        while self._answer.readline():
            pass
        return True
