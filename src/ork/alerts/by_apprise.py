"""Notices through Apprise: whatever service has a URL there."""

from __future__ import annotations

import logging
from contextlib import nullcontext
from typing import Any

from ork.alerts.addresses import NotSentError
from ork.alerts.guarded import Guard, only_public_addresses
from ork.alerts.text import title
from ork.model.notice import Notice, NoticeKind


def notify(notice: Notice, text: str, url: str, *, allow_private: bool) -> None:
    """NotSentError if it did not arrive. Nothing of the URL is ever told: most of them are secrets."""
    service = _service(url)
    with nullcontext(Guard()) if allow_private else only_public_addresses() as guard:
        has_arrived = service.notify(body=text, title=title(notice), notify_type=_kind(notice), body_format="text")
    if guard.refused is not None:
        raise NotSentError(
            f"{guard.refused} is a private address; set `alerts_allow_private: true` in ork.yaml to allow it"
        )
    if not has_arrived:
        raise NotSentError(f"{service.service_name} did not take it")


def _service(url: str) -> Any:
    from apprise import Apprise, AppriseAsset

    # What it logs names URLs, and goes to stderr where nobody set anything else.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    asset = AppriseAsset(app_id="Ork", app_desc="Ork", app_url="", async_mode=False, secure_logging=True)
    service = Apprise.instantiate(url, asset=asset)
    if service is None:
        raise NotSentError("its address is not one that Apprise understands")
    return service


def _kind(notice: Notice) -> str:
    match notice.kind:
        case NoticeKind.TASK | NoticeKind.RUN:
            return "failure"
        case NoticeKind.RECOVERY:
            return "success"
        case NoticeKind.MISSED | NoticeKind.APPROVAL:
            return "warning"
        case NoticeKind.TEST:
            return "info"
