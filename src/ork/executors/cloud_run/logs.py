"""The log of an execution in which nothing of ours runs, from Cloud Logging."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ork.executors.cloud_run.api import CALL_SECONDS, PAGE_SIZE, CloudRunApi, client_credentials

if TYPE_CHECKING:
    from google.auth.transport.requests import AuthorizedSession

SERVICE = "https://logging.googleapis.com"
MAX_BYTES = 4 << 20
_FILTER = (
    'resource.type="cloud_run_job" AND labels."run.googleapis.com/execution_name"="{name}" AND timestamp>="{since}"'
)


async def read_log(api: CloudRunApi, execution: str, since: str) -> bytes:
    """What the execution has written so far, at most MAX_BYTES. EngineError if it cannot be read."""
    return await api.repeated(lambda: _read(api, execution, since))


def _read(api: CloudRunApi, execution: str, since: str) -> bytes:
    from google.auth.transport.requests import AuthorizedSession

    project = execution.split("/")[1]
    wanted: dict[str, Any] = {
        "resourceNames": [f"projects/{project}"],
        "filter": _FILTER.format(name=execution.rpartition("/")[2], since=since),
        "orderBy": "timestamp asc",
        "pageSize": PAGE_SIZE,
    }
    lines: list[str] = []
    size = 0
    with AuthorizedSession(client_credentials(api.endpoint)) as session:
        while size < MAX_BYTES:
            page = post(session, f"{api.endpoint or SERVICE}/v2/entries:list", wanted)
            lines += map(_line, page.get("entries", []))
            size = sum(map(len, lines))
            if not page.get("nextPageToken"):
                break
            wanted["pageToken"] = page["nextPageToken"]
    return "".join(lines).encode()[:MAX_BYTES]


def post(session: AuthorizedSession, url: str, wanted: dict[str, Any]) -> Any:
    """The answer of one of Google's services. GoogleAPICallError if it refuses."""
    answer = session.post(url, json=wanted, timeout=CALL_SECONDS)
    if not answer.ok:
        from google.api_core.exceptions import from_http_response

        raise from_http_response(answer)
    return answer.json()


def _line(entry: dict[str, Any]) -> str:
    import json

    if "textPayload" in entry:
        text = str(entry["textPayload"])
    else:
        payload = entry.get("jsonPayload", {})
        text = str(payload.get("message") or json.dumps(payload))
    return text if text.endswith("\n") else text + "\n"
