"""Encrypts sensitive params with the installation's key before they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ork.model.secret import has_sensitive, seal_params
from ork.model.workflow import CompiledWorkflow

if TYPE_CHECKING:
    from ork.state.reading import StateReader


async def stored_params(store: StateReader, workflow: CompiledWorkflow, params: Mapping[str, Any]) -> dict[str, Any]:
    """The params as a new run stores them. Every caller that creates a run directly in the store has to use this."""
    if not has_sensitive(workflow):
        return dict(params)
    return seal_params(workflow, params, await store.signing_key())
