"""What every store refuses, decided without access to a store."""

from __future__ import annotations

import json

from ork.errors import RefusedError
from ork.model.location import location_of
from ork.model.run import CommandKind, NewRun, Run, RunStatus


def is_too_late(command: CommandKind, status: RunStatus) -> bool:
    """True if the command does not apply to this status; for RETRY, not yet."""
    if command is CommandKind.RETRY:
        return not status.is_final
    if command is CommandKind.PAUSE:
        return status.is_final or status is RunStatus.PAUSED
    if command is CommandKind.RESUME:
        return status is not RunStatus.PAUSED
    return status.is_final


def check_same_request(new: NewRun, existing: Run) -> None:
    """RefusedError if a repeated key comes with another version or other params."""
    # Compared as text, because 1, 1.0 and True are equal in Python but not in JSON.
    same_params = json.dumps(new.params, sort_keys=True) == json.dumps(existing.params, sort_keys=True)
    if new.version != existing.version or not same_params:
        raise RefusedError(
            f"The key {new.key!r} was used for run {existing.id} of {existing.workflow} with other content.",
            hint=f"Use another key, or see that run: ork show {existing.id}",
        )


def ends_unaware_of_cancel(run: Run | None) -> bool:
    """True if this row ends the run without knowing of a cancel request. It must not be written if there is one."""
    return (
        run is not None
        and run.cancel_requested_at is None
        and (run.status is RunStatus.SUCCESS or run.status is RunStatus.FAILED)
    )


def still_has_runs(workflow: str) -> RefusedError:
    return RefusedError(
        f"The workflow {workflow} has runs that have not ended.",
        hint=f"Wait for them or cancel them: ork runs --workflow {workflow}",
    )


def check_owner(workflow: str, owner: str | None, origin: str | None) -> None:
    """RefusedError if the workflow belongs to the location `owner` and is not deployed by it."""
    if owner is None:
        return
    location = location_of(origin)
    if location == owner:
        return
    if location is not None:
        raise RefusedError(f"Workflow {workflow} belongs to location {owner}.", hint="See ork locations", code="ORK710")
    raise belongs_to_location(workflow, owner)


def belongs_to_location(workflow: str, owner: str) -> RefusedError:
    return RefusedError(
        f"Workflow {workflow} belongs to location {owner} and can only be changed there.",
        hint="Change it at the location, or remove the location from locations.yaml: ork locations",
        code="ORK709",
    )


def token_exists(name: str) -> RefusedError:
    return RefusedError(f"The token {name} exists already.", hint="Create another: ork token create")
