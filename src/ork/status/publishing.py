"""What is known about the published pages of the web UI, for people and programs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from ork.model.publishing import PublishState
from ork.status.formatting import ago, count
from ork.status.shapes import time_json


def published_text(state: PublishState, now: datetime) -> str:
    if state.problem is not None:
        when = "" if state.done is None else f" {ago(state.done, now)}"
        return f"{state.to}: failed{when} ({count(state.failures, 'time')} in a row): {state.problem}"
    if state.claimed is not None and state.claimed > now:
        return f"{state.to}: being written"
    if state.done is None:
        return f"{state.to}: " + (
            "not yet" if state.wanted is None else "not yet; runs have ended, and nothing has published them"
        )
    more = "; more has changed since" if state.wanted is not None else ""
    return f"{state.to}: {ago(state.done, now)}, {state.said}{more}"


def published_json(state: PublishState) -> dict[str, Any]:
    return {
        "to": state.to,
        "at": time_json(state.done),
        "is_current": state.wanted is None and state.claimed is None and state.problem is None,
        "problem": state.problem,
        "failures": state.failures,
    }
