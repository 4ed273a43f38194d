"""What a function's process replies, as its supervisor understands it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.objects.json_text import dumps
from ork.objects.local import LocalObjects
from ork.worker.supervise.function import FunctionJob
from ork.worker.supervise.status import Ending


def understood(reply: bytes) -> tuple[Ending, bool]:
    job = FunctionJob(LocalObjects("/"), {"root": "/"})
    job._reply += reply
    return job.ending(0), job.is_swift


def usual(inline: str) -> bytes:
    return b'{"exit_code":0,"output":{"inline":%b},"is_swift":true}\n' % inline.encode()


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
def test_the_usual_answer_says_what_was_returned(text: str) -> None:
    ending, is_swift = understood(usual(dumps(text)))
    assert (ending.state, ending.exit_code, ending.output, is_swift) == ("success", 0, {"inline": text}, True)
    assert (ending.failure, ending.metrics, ending.jobs) == (None, None, None)


@pytest.mark.parametrize(
    "inline", ['"a"},"output":{"inline":"b"', '"\\u0000"', '"\\ud800"', '"a" "b"', "", '"'], ids=lambda text: text[:12]
)
def test_what_only_looks_like_it_is_no_answer(inline: str) -> None:
    ending, is_swift = understood(usual(inline))
    assert (ending.state, is_swift) == ("failed", False)
    assert ending.failure is not None
    assert "reply was unreadable" in ending.failure["message"]


@pytest.mark.parametrize(
    ("more", "is_swift"),
    [({}, False), ({"is_swift": True}, True), ({"metrics": {"rows": 1.0}, "is_swift": True}, True)],
)
def test_any_other_answer_is_understood_too(more: dict[str, Any], is_swift: bool) -> None:
    reply = {"exit_code": 0, "output": None, **more}
    ending, was_swift = understood(dumps(reply).encode() + b"\n")
    assert (ending.state, ending.output, ending.metrics, was_swift) == ("success", None, more.get("metrics"), is_swift)
