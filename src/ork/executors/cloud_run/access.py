"""What our identity may do besides starting Jobs: act as the accounts of tasks, and read logs. Nothing is changed by asking."""

from __future__ import annotations

from ork.executors.cloud_run.api import CloudRunApi, client_credentials
from ork.executors.cloud_run.logs import SERVICE, post
from ork.model.google_permissions import ACT_AS

IAM = "https://iam.googleapis.com"


async def may_act_as(api: CloudRunApi, account: str) -> bool:
    """Whether we may start tasks as a service account. EngineError in the platform's words if it does not say."""

    def ask() -> bool:
        from google.auth.transport.requests import AuthorizedSession

        url = f"{api.endpoint or IAM}/v1/projects/-/serviceAccounts/{account}:testIamPermissions"
        with AuthorizedSession(client_credentials(api.endpoint)) as session:
            held = post(session, url, {"permissions": list(ACT_AS)}).get("permissions", [])
        return set(ACT_AS) <= set(held)

    return await api.repeated(ask)


async def try_logs(api: CloudRunApi) -> None:
    """Reads at most one line of the project's logs. EngineError if that is not allowed."""

    def ask() -> None:
        from google.auth.transport.requests import AuthorizedSession

        wanted = {
            "resourceNames": [f"projects/{api.place.project}"],
            "filter": 'resource.type="cloud_run_job" AND labels."run.googleapis.com/execution_name"="ork-doctor"',
            "pageSize": 1,
        }
        with AuthorizedSession(client_credentials(api.endpoint)) as session:
            post(session, f"{api.endpoint or SERVICE}/v2/entries:list", wanted)

    await api.repeated(ask)
