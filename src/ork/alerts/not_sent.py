"""The error of an alert that was not sent."""

from __future__ import annotations


class NotSentError(Exception):
    """The message says why. It names no URL, which may contain secrets."""
