"""Sends alerts through Apprise, to any service that it has a URL for."""

from __future__ import annotations

import logging
from typing import Any

from ork.alerts.not_sent import NotSentError
from ork.alerts.text import title
from ork.model.notice import Notice, NoticeKind
from ork.model.outbound import OutboundRule
from ork.outbound.guarded import permitted_connections


def notify(notice: Notice, text: str, url: str, rule: OutboundRule) -> None:
    """Raises NotSentError. No part of the URL is reported: most of them contain secrets."""
    service = _service(url)
    with permitted_connections(rule) as guard:
        has_arrived = service.notify(body=text, title=title(notice), notify_type=_kind(notice), body_format="text")
    if guard.refused is not None:
        raise NotSentError(guard.refused.message)
    if not has_arrived:
        raise NotSentError(f"{service.service_name} did not accept it")


def _service(url: str) -> Any:
    from apprise import Apprise, AppriseAsset

    # Its log contains URLs, and goes to stderr by default.
    logging.getLogger("apprise").setLevel(logging.CRITICAL + 1)
    asset = AppriseAsset(app_id="Ork", app_desc="Ork", app_url="", async_mode=False, secure_logging=True)
    service = Apprise.instantiate(url, asset=asset)
    if service is None:
        raise NotSentError("Apprise does not support its URL")
    return service


def _kind(notice: Notice) -> str:
    match notice.kind:
        case NoticeKind.TASK | NoticeKind.RUN:
            return "failure"
        case NoticeKind.RECOVERY:
            return "success"
        case NoticeKind.MISSED | NoticeKind.APPROVAL | NoticeKind.BUDGET:
            return "warning"
        case NoticeKind.TEST:
            return "info"
