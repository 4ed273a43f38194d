"""Params on their way into the store: sensitive ones are sealed with the installation's key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ork.model.sealed import has_sensitive, seal_params
from ork.model.workflow import CompiledWorkflow

if TYPE_CHECKING:
    from ork.state.reading import StateReader


async def stored_params(store: StateReader, workflow: CompiledWorkflow, params: Mapping[str, Any]) -> dict[str, Any]:
    """As a new run has them. To be called by everybody who creates one beside the store."""
    if not has_sensitive(workflow):
        return dict(params)
    return seal_params(workflow, params, await store.signing_key())
