"""What user code may raise."""

from __future__ import annotations


class TaskError(Exception):
    """The task fails with this sentence; with `retry=False` it is not tried again."""

    def __init__(self, message: str, *, retry: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.retry = retry
