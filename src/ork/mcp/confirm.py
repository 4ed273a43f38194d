"""Asks before a tool changes something.

A client that can ask its user (elicitation) does so. For any other client a change takes two calls: the first returns what
would happen and a code, and the second one repeats the call with that code.
"""

from __future__ import annotations

import hashlib
from typing import Any

from mcp.server.mcpserver import Context, Elicit
from pydantic import BaseModel, Field

CODE_LENGTH = 8


class Decision(BaseModel):
    """The user's answer."""

    proceed: bool = Field(True, description="Do it.")


def ask(context: Context, confirm: str | None, action: str) -> Elicit[Decision] | Decision:
    """The decision, or the question to the user. Without elicitation `confirm` must be the code of this action."""
    if confirm is not None and confirm == code_of(action):
        return Decision(proceed=True)
    if _can_ask(context):
        return Elicit(f"{action}?", Decision)
    return Decision(proceed=False)


def question(action: str) -> dict[str, Any]:
    """The answer to a call that was not confirmed."""
    return {
        "done": False,
        "would": action,
        "confirm": code_of(action),
        "next": "Ask the user. If they agree, call this tool again with the same arguments and this `confirm`.",
    }


def code_of(action: str) -> str:
    """A code that fits this action only. It is no secret: the role decides what is allowed."""
    return hashlib.sha256(action.encode()).hexdigest()[:CODE_LENGTH]


def _can_ask(context: Context) -> bool:
    capabilities = context.client_capabilities
    return capabilities is not None and capabilities.elicitation is not None
