"""What a local task's process is confined to: the user it runs as (`task_user`) and how large it may be (worker config)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

    from ork.worker.supervise.limits import Limits
    from ork.worker.supervise.log import Log
    from ork.worker.supervise.status import Ending
    from ork.worker.supervise.task_user import Exchange, TaskUser


_NO_ACCESS = "Permission denied"


class TaskUserError(Exception):
    """A sentence saying why the task cannot run as its user."""


class Confinement:
    """Made by the worker for one attempt; removed when that has ended. `exchange` is there if the user is another one."""

    def __init__(self, user: TaskUser | None, limits: Limits | None) -> None:
        self.user = user
        self.limits = limits
        self.exchange: Exchange | None = None
        if user is not None:
            from ork.worker.supervise.task_user import Exchange

            self.exchange = Exchange(user)

    def enter(self, keep: Collection[int] = (), *, executes: bool = False) -> None:
        """In the task's process, before anything of the user's; `keep` stays open. OSError if that is not possible: then it must end."""
        if self.limits is not None:
            self.limits.enter(executes=executes)
        if self.user is not None:
            self.user.become(keep)

    def explain(self, ending: Ending, log: Log | None) -> Ending:
        """Adds the confinement to a failure that comes of it; where the task succeeded all the same, to its log."""
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


def is_confined(spec: dict[str, Any]) -> bool:
    """Whether its process is made for it alone: one that waits, or is shared, belongs to the worker's user."""
    # Without a call: every attempt is asked. Specs of an earlier release have neither.
    return ("task_user" in spec and spec["task_user"] is not None) or ("limits" in spec and spec["limits"] is not None)


def confinement_of(spec: dict[str, Any]) -> Confinement | None:
    """TaskUserError if there is no such user, OSError if its folder cannot be made."""
    if not is_confined(spec) or spec.get("container") is not None:
        return None
    from ork.worker.supervise.limits import limits_of
    from ork.worker.supervise.task_user import user_of

    user, limits = user_of(spec), limits_of(spec)
    return None if user is None and limits is None else Confinement(user, limits)
