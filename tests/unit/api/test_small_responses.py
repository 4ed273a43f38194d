"""Responses are compressed, and what has not changed is not sent again."""

from __future__ import annotations

import gzip

import pytest

from ork.api import compression
from ork.api.routing import PREFIX
from ork.model.run import RunStatus
from tests.unit.api.conftest import Bench, worked_on


async def test_json_above_a_kilobyte_is_compressed_for_those_who_accept_it(bench: Bench) -> None:
    await worked_on(bench)
    async with await bench.client() as client:
        small = await client.get(f"{PREFIX}/run-ids?prefix=0")
        assert "content-encoding" not in small.headers
        large = await client.get(f"{PREFIX}/runs/@last")
        assert large.headers["content-encoding"] == "gzip"
        assert large.headers["vary"] == "Accept-Encoding"
        assert int(large.headers["content-length"]) < len(large.content)
        for refusing in ("identity", "gzip;q=0, identity", ""):
            plain = await client.get(f"{PREFIX}/runs/@last", headers={"Accept-Encoding": refusing})
            assert "content-encoding" not in plain.headers
            assert plain.content == large.content
            assert plain.headers["vary"] == "Accept-Encoding"


async def test_a_large_response_is_compressed_beside_the_loop(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    await worked_on(bench)
    in_threads: list[int] = []

    def compressed(body: bytes) -> bytes:
        in_threads.append(len(body))
        return gzip.compress(body)

    monkeypatch.setattr(compression, "_compressed", compressed)
    monkeypatch.setattr(compression, "LOOP_BYTES", 1100)
    async with await bench.client() as client:
        assert (await client.get(f"{PREFIX}/runs/@last")).json()["tasks"]
        assert len(in_threads) == 1


async def test_a_run_that_has_ended_is_sent_once(bench: Bench) -> None:
    await worked_on(bench, RunStatus.FAILED)
    async with await bench.client() as client:
        first = await client.get(f"{PREFIX}/runs/@last")
        tag = first.headers["etag"]
        assert first.headers["cache-control"] == "private, no-cache"
        again = await client.get(f"{PREFIX}/runs/@last", headers={"If-None-Match": f'"other", {tag}'})
        assert (again.status_code, again.content, again.headers["etag"]) == (304, b"", tag)
        await client.post(f"{PREFIX}/runs/@last/retry")  # the run changes
        changed = await client.get(f"{PREFIX}/runs/@last", headers={"If-None-Match": tag})
        assert changed.status_code == 200


async def test_a_run_that_goes_on_is_never_kept(bench: Bench) -> None:
    await worked_on(bench)
    async with await bench.client() as client:
        answer = await client.get(f"{PREFIX}/runs/@last", headers={"If-None-Match": "*"})
        assert answer.status_code == 200
        assert answer.headers["cache-control"] == "no-store"
        assert "etag" not in answer.headers


async def test_a_version_is_sent_once(bench: Bench) -> None:
    version = await bench.deploy()
    async with await bench.client() as client:
        tag = (await client.get(f"{PREFIX}/versions/{version.id}")).headers["etag"]
        again = await client.get(f"{PREFIX}/versions/{version.id}", headers={"If-None-Match": tag})
        assert again.status_code == 304
        assert (await client.get(f"{PREFIX}/versions/other", headers={"If-None-Match": tag})).status_code == 404
