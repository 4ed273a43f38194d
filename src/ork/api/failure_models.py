"""The detail of a failure in responses, for the OpenAPI document."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid")


class FailureFrame(Strict):
    """A place in the user's code. `source` is the text of the line; the failing expression begins and ends at the columns
    `caret`."""

    file: str
    line: int
    function: str
    source: str
    caret: list[int] | None


class FailureCause(Strict):
    """An exception that led to another one."""

    type: str
    message: str
    frames: list[FailureFrame]


class FailureDetail(Strict):
    """An exception has a type, a message, frames (the outermost first), causes and the inputs of the call; a command or a
    container has the last lines of its log. `retry` is false if another attempt is not allowed; `unreachable` says why the
    end could not be observed. Jobs of other services may add fields."""

    model_config = ConfigDict(extra="allow")

    type: str = ""
    message: str = ""
    frames: list[FailureFrame] = Field(default_factory=list)
    causes: list[FailureCause] = Field(default_factory=list)
    inputs: dict[str, str] = Field(default_factory=dict)
    tail: list[str] = Field(default_factory=list)
    retry: bool = True
    unreachable: str = ""
