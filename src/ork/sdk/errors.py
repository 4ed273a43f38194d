"""Exceptions for user code to raise."""

from __future__ import annotations


class TaskError(Exception):
    """Fails the task with this message; with `retry=False` it is not retried."""

    def __init__(self, message: str, *, retry: bool = True) -> None:
        super().__init__(message)
        self.message = message
        self.retry = retry
