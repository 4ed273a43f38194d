"""`alarm` in ork.yaml: who calls a tick when something is due, while no scheduler runs."""

from __future__ import annotations

import re
from enum import StrEnum

from ork.model.record import Record

QUEUE = re.compile(r"projects/[a-z][a-z0-9:.-]{1,62}/locations/[a-z0-9-]{1,62}/queues/[A-Za-z0-9-]{1,100}")
ACCOUNT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*@[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+")
SERVICE_URL = re.compile(r"(https://[^/?#\s@]+|http://(127\.0\.0\.1|localhost|\[::1\])(:\d+)?)/?")
GOOGLE_KEYS = "https://www.googleapis.com/oauth2/v1/certs"


class AlarmKind(StrEnum):
    NONE = "none"
    SYSTEMD = "systemd"
    CLOUD_TASKS = "cloud_tasks"


class AlarmConfig(Record):
    """Settings of the alarm. All but `kind` are for Cloud Tasks.

    `service_account` is the identity that calls `url` with a token of the platform. `endpoint` replaces the service's
    address, and `keys_url` that of the keys which sign tokens: for emulators.
    """

    kind: AlarmKind = AlarmKind.NONE
    queue: str = ""
    url: str = ""
    service_account: str = ""
    endpoint: str | None = None
    keys_url: str = GOOGLE_KEYS

    @property
    def is_on(self) -> bool:
        return self.kind is not AlarmKind.NONE


NO_ALARM = AlarmConfig()


def alarm_mistake(name: str, value: str) -> tuple[str, str] | None:
    """What is wrong with the value of a setting of Cloud Tasks, and how to write it; None if nothing is."""
    pattern, what, example = _RULES[name]
    return None if pattern.fullmatch(value) else (f"{value!r} is not {what}", example)


_RULES = {
    "queue": (QUEUE, "the full name of a queue", "write projects/PROJECT/locations/REGION/queues/NAME"),
    "url": (
        SERVICE_URL,
        "the address of a service",
        "write https://HOST without a path, the address of `ork serve --on-request`",
    ),
    "service_account": (ACCOUNT, "the e-mail of a service account", "write NAME@PROJECT.iam.gserviceaccount.com"),
}
CLOUD_TASKS_KEYS = tuple(_RULES)
