"""Why a notice did not arrive."""

from __future__ import annotations


class NotSentError(Exception):
    """A sentence saying why. It names no URL: addresses may carry secrets."""
