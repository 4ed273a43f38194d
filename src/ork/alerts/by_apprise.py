"""Notices through Apprise: whatever service has a URL there."""

from __future__ import annotations

import logging
from typing import Any

from ork.alerts.not_sent import NotSentError
from ork.alerts.text import title
from ork.model.notice import Notice, NoticeKind
from ork.model.outbound import OutboundRule
from ork.outbound.guarded import permitted_connections


def notify(notice: Notice, text: str, url: str, rule: OutboundRule) -> None:
    """NotSentError if it did not arrive. Nothing of the URL is ever told: most of them are secrets."""
    service = _service(url)
    with permitted_connections(rule) as guard:
        has_arrived = service.notify(body=text, title=title(notice), notify_type=_kind(notice), body_format="text")
    if guard.refused is not None:
        raise NotSentError(guard.refused.message)
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
