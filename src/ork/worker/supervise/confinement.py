"""Confines the process of a local task: the user it runs as (`task_user`), and its limits (worker config)."""

from __future__ import annotations

from ork.worker.supervise.process import is_confined

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from ork.worker.supervise.limits import ProcessLimits
    from ork.worker.supervise.log import Log
    from ork.worker.supervise.status import Ending
    from ork.worker.supervise.task_user import Exchange, TaskUser


_NO_ACCESS = "Permission denied"


class TaskUserError(Exception):
    """A sentence saying why the task cannot run as its user."""


class Confinement:
    """Created by the worker for one attempt, and removed after it. `exchange` exists if the task runs as another user."""

    def __init__(self, user: TaskUser | None, limits: ProcessLimits | None) -> None:
        self.user = user
        self.limits = limits
        self.exchange: Exchange | None = None
        if user is not None:
            from ork.worker.supervise.task_user import Exchange

            self.exchange = Exchange(user)

    def enter(self, keep: Collection[int] = (), *, executes: bool = False) -> None:
        """Call it in the task's process before any user code; `keep` stays open. After an OSError the process must exit."""
        if self.limits is not None:
            self.limits.enter(executes=executes)
        if self.user is not None:
            self.user.become(keep)

    def explain(self, ending: Ending, log: Log | None) -> Ending:
        """Add the limit to a failure that it caused, or to the log if the task succeeded."""
        if self.limits is not None:
            ending = self.limits.explain(ending, log)
        failure = ending.failure
        if failure is not None and self.user is not None and str(failure["message"]).endswith(_NO_ACCESS):
            failure["message"] += f" (tasks run as the user `{self.user.name}`, who must be able to read it)"
        return ending

    def remove(self) -> None:
        if self.limits is not None:
            self.limits.remove()
        if self.exchange is not None:
            self.exchange.remove()


def confinement_of(spec: dict[str, Any]) -> Confinement | None:
    """The confinement of a spec. TaskUserError if there is no such user, OSError if its folder cannot be created."""
    if not is_confined(spec) or spec.get("container") is not None:
        return None
    from ork.worker.supervise.limits import limits_of
    from ork.worker.supervise.task_user import user_of

    user, limits = user_of(spec), limits_of(spec)
    return None if user is None and limits is None else Confinement(user, limits)
