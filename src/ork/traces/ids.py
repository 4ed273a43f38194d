"""The ids of traces and spans, made from those of runs and attempts.

Nothing has to be remembered: whichever scheduler ends an attempt, after however many others, knows the span it is, and
so does the task that was told of it when it was started.
"""

from __future__ import annotations

from hashlib import sha256

from ork.model.ids import AttemptKey

TRACE_BYTES, SPAN_BYTES = 16, 8


def trace_id(run: str) -> int:
    return _number(f"trace {run}", TRACE_BYTES)


def run_span_id(run: str, round: int) -> int:
    """Each retry of a whole run by a person is a span of its own, in the same trace."""
    return _number(f"run {run} {round}", SPAN_BYTES)


def attempt_span_id(attempt: str) -> int:
    return _number(f"attempt {attempt}", SPAN_BYTES)


def traceparent(attempt: AttemptKey, *, is_sampled: bool) -> str:
    """What the attempt's own spans hang below, as W3C Trace Context writes it."""
    return f"00-{trace_id(attempt.run):032x}-{attempt_span_id(str(attempt)):016x}-{int(is_sampled):02x}"


def _number(text: str, size: int) -> int:
    """Never zero, which would mean that there is none."""
    return int.from_bytes(sha256(text.encode()).digest()[:size]) or 1
