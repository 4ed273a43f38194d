"""Questions about an installation on Google Cloud, for `ork doctor --cloud`. Asking changes nothing."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ork.app.cloud_run import ENDPOINT_VARIABLE
from ork.app.platforms import placement_of
from ork.errors import EngineError, UsageError
from ork.model.google_permissions import ACT_AS, LOGS
from ork.model.infra import Where, WorkerConfig
from ork.model.record import Record

if TYPE_CHECKING:
    from ork.model.cloud_run import Place
    from ork.settings import Settings

METADATA_SECONDS = 10.0


class Identity(Record):
    """Who this process is to Google Cloud. `member` is as policies name it; None if the credentials do not say."""

    member: str | None
    is_person: bool


class Lack(Record):
    """A permission that this process lacks: at a place, and on which account if it is about one; `problem` if nobody can say."""

    place: Place
    permission: str
    account: str | None = None
    problem: EngineError | None = None


def identity() -> Identity:
    """UsageError if there are no credentials, or Google's package is not installed. Blocks."""
    try:
        from google.auth import default
        from google.auth.exceptions import GoogleAuthError
    except ModuleNotFoundError as error:
        hint = "pip install 'ork-orchestrator[gcp,cloud]'"
        raise UsageError(f"a package is not installed: {error.name}", hint=hint) from None
    try:
        found = default(scopes=["https://www.googleapis.com/auth/cloud-platform"])[0]
        email = _account_of(found)
    except GoogleAuthError as error:
        hint = "run it where a service account is attached, or: gcloud auth application-default login"
        raise UsageError(f"there are no Google credentials: {str(error).splitlines()[0]}", hint=hint) from None
    is_person = email is None
    return Identity(None if email is None else f"serviceAccount:{email}", is_person)


def _account_of(credentials: object) -> str | None:
    """The service account; None for a person. On Google Cloud its name is known after the first token."""
    email = getattr(credentials, "service_account_email", None)
    if email == "default":
        import google.auth.transport.requests

        credentials.refresh(google.auth.transport.requests.Request())  # type: ignore[attr-defined]
        email = credentials.service_account_email  # type: ignore[attr-defined]
    return None if email is None else str(email)


def uses_emulators(settings: Settings) -> bool:
    """Whether the services are replaced, and nobody asks for credentials."""
    return bool(settings.environ.get(ENDPOINT_VARIABLE))


def configs_there(settings: Settings) -> list[WorkerConfig]:
    """The worker configs whose tasks run on Cloud Run; where there are none, the one that tasks get by default."""
    default = settings.project_or_default.default_where
    found = [each for each in settings.workers.values() if (each.where or default) is Where.CLOUDRUN]
    return found or ([WorkerConfig("default", Where.CLOUDRUN)] if default is Where.CLOUDRUN else [])


async def lacking(settings: Settings) -> list[Lack]:
    """What this process may not do, besides what `check_permissions` of `app.cloud_run` asks: act as tasks, and read their logs."""
    from ork.executors.cloud_run.access import may_act_as, try_logs
    from ork.executors.cloud_run.api import CloudRunApi

    placement = placement_of(settings)
    placed = [(placement.place(config), config.service_account) for config in configs_there(settings)]
    accounts = {(place, account) for place, account in placed if place is not None and account is not None}
    found = []
    for place in dict.fromkeys(place for place, _ in placed if place is not None):
        api = CloudRunApi(place, settings.environ.get(ENDPOINT_VARIABLE) or None)
        try:
            for account in sorted(account for where, account in accounts if where == place):
                try:
                    if not await may_act_as(api, account):
                        found.append(Lack(place, ACT_AS[0], account))
                except EngineError as error:
                    found.append(Lack(place, ACT_AS[0], account, error))
            try:
                await try_logs(api)
            except EngineError as error:
                found.append(Lack(place, LOGS[0], problem=error))
        finally:
            api.close()
    return found


async def answer_of(url: str, seconds: float) -> tuple[int, str]:
    """The status and the beginning of what a GET is answered. OSError if there is no answer."""
    import httpx2

    from ork.outbound.clients import blocking_client, reason

    def ask() -> tuple[int, str]:
        try:
            with blocking_client(url, seconds=seconds) as client:
                answer = client.get(url)
        except httpx2.HTTPError as error:
            raise OSError(reason(error)) from None
        return answer.status_code, answer.text[:300]

    return await asyncio.to_thread(ask)
