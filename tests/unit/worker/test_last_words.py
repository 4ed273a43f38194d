"""What a call that went well says is written down without being put together first: letter by letter the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ork.worker import status
from ork.worker.status import only_word, only_word_of_success, returned

MOMENT = "2026-11-16T05:07:18.671148Z"


@pytest.fixture(autouse=True, scope="module")
def time_stands_still() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(status, "utc_text", lambda _nanoseconds: MOMENT)
        yield


@given(st.text(), st.none() | st.text())
def test_a_plain_success_says_what_any_end_says(attempt: str, output: str | None) -> None:
    kept = None if output is None else {"inline": output}
    at_length = only_word(attempt, MOMENT, returned({"exit_code": 0, "output": kept}))
    assert only_word_of_success(attempt, MOMENT, output) == at_length
