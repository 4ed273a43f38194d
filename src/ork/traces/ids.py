"""The ids of traces and spans, derived from those of runs and attempts.

Nothing has to be stored: any scheduler that ends an attempt can compute its span id, and the task gets it at launch.
"""

from __future__ import annotations

from hashlib import sha256

from ork.model.ids import AttemptKey

TRACE_BYTES, SPAN_BYTES = 16, 8


def trace_id(run: str) -> int:
    return _number(f"trace {run}", TRACE_BYTES)


def run_span_id(run: str, round: int) -> int:
    """Each round of a run is a span of its own, in the same trace."""
    return _number(f"run {run} {round}", SPAN_BYTES)


def attempt_span_id(attempt: str) -> int:
    return _number(f"attempt {attempt}", SPAN_BYTES)


def traceparent(attempt: AttemptKey, *, is_sampled: bool) -> str:
    """The W3C Trace Context that the task's own spans use as their parent."""
    return f"00-{trace_id(attempt.run):032x}-{attempt_span_id(str(attempt)):016x}-{int(is_sampled):02x}"


def _number(text: str, size: int) -> int:
    """Never zero, which means "no id"."""
    return int.from_bytes(sha256(text.encode()).digest()[:size]) or 1
