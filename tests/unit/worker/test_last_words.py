"""What a call that went well says is written down without being put together first: letter by letter the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.objects.json_text import dumps
from ork.worker import status
from ork.worker.status import only_word, returned

MOMENT = "2026-11-16T05:07:18.671148Z"


@pytest.fixture(autouse=True, scope="module")
def time_stands_still() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(status, "utc_text", lambda _nanoseconds: MOMENT)
        yield


@given(st.text(), st.none() | st.text())
def test_a_plain_success_says_what_any_end_says(attempt: str, output: str | None) -> None:
    kept = None if output is None else {"inline": output}
    ending = returned({"exit_code": 0, "output": kept})
    assert only_word(attempt, MOMENT, ending) == dumps(status._words(attempt, 1, "success", MOMENT, ending))


@pytest.mark.parametrize(
    "outcome",
    [
        {"exit_code": 0, "output": {"object": "runs/r/t.0.1.output.json", "size": 100_000}},
        {"exit_code": 0, "output": None, "metrics": {"rows": 3.0}},
        {"exit_code": 1, "failure": {"kind": "exit", "message": "exit code 1", "detail": None}},
        {"exit_code": 0, "jobs": [{"id": "7"}]},
    ],
)
def test_what_is_more_than_that_is_said_at_length(outcome: dict[str, Any]) -> None:
    ending = returned(outcome)
    assert json.loads(only_word("a", MOMENT, ending)) == status._words("a", 1, ending.state, MOMENT, ending)
