"""Requests as tasks, against a real server on the loopback address."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

import ork
from ork.sdk.http import HttpDefaults, HttpExecutor
from tests.loopback import Loopback, loopback
from tests.unit.outbound.test_fetch import redirector


@pytest.fixture
def site() -> Iterator[Loopback]:
    with loopback() as site:
        yield site


def run(config: dict[str, Any], inputs: dict[str, Any] | None = None, **defaults: Any) -> Any:
    executor = HttpExecutor(HttpDefaults(**defaults))
    return executor.run(ork.Context(), HttpExecutor.TaskConfig(**config), inputs or {})


def test_json_comes_back_as_data_and_anything_else_as_text(site: Loopback) -> None:
    site.answers |= {"/json": (200, {"rows": [1]}), "/text": (200, b"hello"), "/empty": (204, b"")}
    assert run({"url": site.url + "/json"}) == {"rows": [1]}
    assert run({"url": site.url + "/json", "output": "text"}) == '{"rows": [1]}'
    assert run({"url": site.url + "/text"}) == "hello"
    assert run({"url": site.url + "/empty"}) is None
    assert run({"url": site.url + "/json", "output": "none"}) is None


def test_parameters_headers_and_the_shared_address_reach_the_server(site: Loopback) -> None:
    site.answers["/a"] = (200, 1)
    config = {"url": "a", "params": {"q": "x&y=1", "ok": True, "many": [1, 2], "no": None}, "headers": {"X-Own": "own"}}
    run(config, base_url=site.url + "/", headers={"X-Shared": "shared", "X-Own": "shared"})
    asked = site.asked[0]
    assert asked.path == "/a?q=x%26y%3D1&ok=true&many=1&many=2"
    assert (asked.headers["X-Shared"], asked.headers["X-Own"]) == ("shared", "own")


def test_inputs_are_the_body_of_a_post_unless_the_task_says_otherwise(site: Loopback) -> None:
    site.answers["/a"] = (201, {})
    run({"url": site.url + "/a", "method": "post"}, {"n": 1})
    run({"url": site.url + "/a", "method": "POST", "json": [1]}, {"n": 1})
    run({"url": site.url + "/a", "method": "POST", "body": "raw", "headers": {"Content-Type": "text/x"}}, {"n": 1})
    assert [each.body for each in site.asked] == [b'{"n": 1}', b"[1]", b"raw"]
    assert [each.headers["Content-Type"] for each in site.asked] == ["application/json", "application/json", "text/x"]


@pytest.mark.parametrize(("status", "retry"), [(400, False), (404, False), (429, True), (500, True), (503, True)])
def test_a_status_that_is_not_expected_fails_and_is_retried_if_it_may_pass(
    site: Loopback, status: int, retry: bool
) -> None:
    site.answers["/a"] = (status, {"error": "why"})
    with pytest.raises(ork.TaskError, match=f"returned status {status}, expected 2xx: .*why") as caught:
        run({"url": site.url + "/a"})
    assert caught.value.retry is retry


def test_what_is_expected_can_be_said(site: Loopback) -> None:
    site.answers["/a"] = (404, {"gone": True})
    assert run({"url": site.url + "/a", "expect": [200, 404]}) == {"gone": True}
    with pytest.raises(ork.TaskError, match="returned status 404, expected 200"):
        run({"url": site.url + "/a", "expect": 200})


def test_an_answer_that_is_too_large_or_not_what_it_says_fails(site: Loopback) -> None:
    site.answers |= {"/large": (200, b"x" * 1000), "/broken": (200, b"{")}
    with pytest.raises(ork.TaskError, match="more than 100 bytes"):
        run({"url": site.url + "/large", "limit": 100})
    with pytest.raises(ork.TaskError, match="not JSON"):
        run({"url": site.url + "/broken", "output": "json"})


def test_a_missing_server_may_be_retried() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://user:password@127.0.0.1:{free.getsockname()[1]}/secret"
        with pytest.raises(ork.TaskError, match="no response from http://127") as caught:
            run({"url": url, "timeout": 5})
    assert caught.value.retry is True
    assert "password" not in caught.value.message


@pytest.mark.parametrize("url", ["file:///etc/passwd", "ftp://x/", "/a", "http://x/ HTTP/1.1\r\nX: y", "http://"])
def test_only_complete_urls_are_requested(url: str) -> None:
    with pytest.raises(ork.TaskError, match="URL") as caught:
        run({"url": url})
    assert caught.value.retry is False


def test_json_and_body_exclude_each_other() -> None:
    with pytest.raises(ork.TaskError, match="exclude each other"):
        run({"url": "http://x/", "method": "POST", "json": 1, "body": json.dumps(1)})


def test_headers_are_not_sent_on_to_another_origin(site: Loopback) -> None:
    site.answers["/there"] = (200, 1)
    headers = {"Authorization": "a", "X-Key": "b", "Accept": "application/json"}
    with redirector(f"{site.url}/there") as (url, asked):
        assert run({"url": f"{url}/start", "headers": headers}) == 1
    with redirector("/end") as (url, same):
        run({"url": f"{url}/start", "headers": headers})
    assert asked[0]["X-Key"] == same[1]["X-Key"] == "b"
    assert {name.lower() for name in site.asked[0].headers} & {"authorization", "x-key"} == set()
    assert site.asked[0].headers["Accept"] == "application/json"
