"""Sends one alert to one channel. Blocking: call it in a thread."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from ork.alerts.channels import Channel, Mail, Word
from ork.alerts.not_sent import NotSentError
from ork.alerts.text import document, title, words
from ork.model.notice import Notice
from ork.model.outbound import OutboundRule
from ork.model.workflow import Secret
from ork.outbound.addresses import BlockedAddressError, NoResponseError, check_url
from ork.outbound.guarded import permitted_connections

TIMEOUT_SECONDS = 10.0
_LIMIT = 1 << 20

Secrets = Callable[[str], str | None]


def send(notice: Notice, channel: Channel, secrets: Secrets, rule: OutboundRule) -> None:
    """Raises NotSentError if it was not sent; a retry may help."""
    text = words(notice, channel.template)
    if channel.webhook is not None:
        _post(_value(channel.webhook, secrets), document(notice, text), notice.id, rule)
    if channel.slack is not None:
        _post(_value(channel.slack, secrets), {"text": text}, notice.id, rule)
    if channel.mail is not None:
        _mail(notice, text, channel.mail, secrets, rule)
    if channel.apprise is not None:
        from ork.alerts.by_apprise import notify

        notify(notice, text, _value(channel.apprise, secrets), rule)


def _value(word: Word, secrets: Secrets) -> str:
    if not isinstance(word, Secret):
        return word
    value = secrets(word.name)
    if value is None:
        raise NotSentError(f"there is no secret `{word.name}` in the environment, .env or .ork/secrets")
    return value


def _post(url: str, body: Any, id: str, rule: OutboundRule) -> None:
    """Redirects are not followed: an alert is sent only to the host of its channel."""
    from ork.outbound.fetch import fetch

    headers = {"Content-Type": "application/json", "Idempotency-Key": f"ork-alert-{id}"}
    data = json.dumps(body).encode()
    try:
        host = check_url(url).hostname
        posting = fetch(
            url, rule, method="POST", headers=headers, body=data, timeout=TIMEOUT_SECONDS, limit=_LIMIT, redirects=0
        )
        answer = asyncio.run(posting)
    except ValueError as error:
        raise NotSentError(f"its address cannot be used: {error}") from None
    except (BlockedAddressError, NoResponseError) as error:
        raise NotSentError(error.message) from None
    if not 200 <= answer.status < 300:
        raise NotSentError(f"{host} returned status {answer.status}")


def _mail(notice: Notice, text: str, mail: Mail, secrets: Secrets, rule: OutboundRule) -> None:
    import smtplib
    import ssl
    from email.message import EmailMessage
    from email.utils import format_datetime

    message = EmailMessage()
    message["Subject"] = " ".join(title(notice).split())[:200]
    message["From"] = mail.sender
    message["To"] = ", ".join(mail.to)
    message["Date"] = format_datetime(notice.raised_at)
    # The same for every retry: mail programs show a message with a known id only once.
    message["Message-ID"] = (
        f"<ork-alert-{notice.id}-{int(notice.raised_at.timestamp())}@{mail.sender.rpartition('@')[2]}>"
    )
    message.set_content(text)
    try:
        with permitted_connections(rule) as guard:
            if mail.tls == "ssl":
                context = ssl.create_default_context()
                server: smtplib.SMTP = smtplib.SMTP_SSL(mail.host, mail.port, timeout=TIMEOUT_SECONDS, context=context)
            else:
                server = smtplib.SMTP(mail.host, mail.port, timeout=TIMEOUT_SECONDS)
        with server:
            if mail.tls == "starttls":
                server.starttls(context=ssl.create_default_context())
            if mail.user is not None and mail.password is not None:
                server.login(_value(mail.user, secrets), _value(mail.password, secrets))
            server.send_message(message)
    except (OSError, smtplib.SMTPException) as error:
        if guard.refused is not None:
            raise NotSentError(guard.refused.message) from None
        raise NotSentError(f"the mail server {mail.host}:{mail.port} did not accept it: {error}") from error
