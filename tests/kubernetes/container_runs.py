"""What the agent knows of one container of a pod, in the words of the API."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Document = dict[str, Any]


@dataclass(eq=False)
class ContainerRun:
    """`is_over`: it has ended and is not started again."""

    spec: Document
    is_init: bool
    state: Document = field(default_factory=dict)
    last_state: Document = field(default_factory=dict)
    id: str = ""
    previous_id: str = ""
    image_id: str = ""
    restarts: int = 0
    is_ready: bool = False
    is_over: bool = False
    started: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def name(self) -> str:
        return str(self.spec["name"])

    @property
    def is_sidecar(self) -> bool:
        return self.is_init and self.spec.get("restartPolicy") == "Always"

    @property
    def is_running(self) -> bool:
        return "running" in self.state

    @property
    def exit_code(self) -> int | None:
        return int(self.state["terminated"]["exitCode"]) if "terminated" in self.state else None

    def status(self) -> Document:
        ready = self.exit_code == 0 if self.is_init and not self.is_sidecar else self.is_ready
        return {
            "name": self.name,
            "image": self.spec["image"],
            "imageID": self.image_id,
            "containerID": f"docker://{self.id}" if self.id else "",
            "ready": ready,
            "started": self.is_running and self.started.is_set(),
            "restartCount": self.restarts,
            "state": self.state,
            "lastState": self.last_state,
        }


def ended_state(run: ContainerRun, inspected: Document, message: str) -> Document:
    """The `terminated` state of a container that the engine says has ended."""
    found = inspected["State"]
    code = int(found["ExitCode"])
    reason = "OOMKilled" if found.get("OOMKilled") and code else "Error" if code else "Completed"
    state = {
        "exitCode": code,
        "reason": reason,
        "startedAt": _seconds(found["StartedAt"]),
        "finishedAt": _seconds(found["FinishedAt"]),
        "containerID": f"docker://{run.id}",
    }
    return {"terminated": {**state, "message": message} if message else state}


def never_started(code: int, reason: str, message: str) -> Document:
    moment = now()
    return {
        "terminated": {
            "exitCode": code,
            "reason": reason,
            "message": message,
            "startedAt": moment,
            "finishedAt": moment,
        }
    }


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _seconds(engine_time: str) -> str:
    """The engine counts nanoseconds, the API seconds."""
    return engine_time[:19] + "Z"
