"""One notice to one channel, now. Plain and blocking: it runs in a thread of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.client import HTTPException
from typing import Any

from ork.alerts.addresses import NotSentError, check_url, open_connection
from ork.alerts.channels import Channel, Mail, Word
from ork.alerts.text import document, title, words
from ork.model.notice import Notice
from ork.model.workflow import Secret

TIMEOUT_SECONDS = 10.0
_READ_AT_MOST = 4096

Secrets = Callable[[str], str | None]


def send(notice: Notice, channel: Channel, secrets: Secrets, *, allow_private: bool) -> None:
    """NotSentError if it did not arrive; trying again may help."""
    text = words(notice, channel.template)
    if channel.webhook is not None:
        _post(_value(channel.webhook, secrets), document(notice, text), notice.id, allow_private)
    if channel.slack is not None:
        _post(_value(channel.slack, secrets), {"text": text}, notice.id, allow_private)
    if channel.mail is not None:
        _mail(notice, text, channel.mail, secrets)
    if channel.apprise is not None:
        from ork.alerts.by_apprise import notify

        notify(notice, text, _value(channel.apprise, secrets), allow_private=allow_private)


def _value(word: Word, secrets: Secrets) -> str:
    if not isinstance(word, Secret):
        return word
    value = secrets(word.name)
    if value is None:
        raise NotSentError(f"there is no secret `{word.name}` in the environment, .env or .ork/secrets")
    return value


def _post(url: str, body: Any, id: int, allow_private: bool) -> None:
    """Redirects are not followed: they could lead where the URL itself may not."""
    parts = check_url(url)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {"Content-Type": "application/json", "User-Agent": "ork", "Idempotency-Key": f"ork-alert-{id}"}
    connection = open_connection(parts, allow_private=allow_private, timeout=TIMEOUT_SECONDS)
    try:
        connection.request("POST", path, json.dumps(body).encode(), headers)
        response = connection.getresponse()
        response.read(_READ_AT_MOST)
    except (OSError, HTTPException) as error:
        raise NotSentError(f"no answer from {parts.hostname}: {error or type(error).__name__}") from error
    finally:
        connection.close()
    if not 200 <= response.status < 300:
        raise NotSentError(f"{parts.hostname} answered {response.status}")


def _mail(notice: Notice, text: str, mail: Mail, secrets: Secrets) -> None:
    import smtplib
    import ssl
    from email.message import EmailMessage
    from email.utils import format_datetime

    message = EmailMessage()
    message["Subject"] = " ".join(title(notice).split())[:200]
    message["From"] = mail.sender
    message["To"] = ", ".join(mail.to)
    message["Date"] = format_datetime(notice.raised_at)
    # The same for every try: mail programs show a message they have seen before only once.
    message["Message-ID"] = (
        f"<ork-alert-{notice.id}-{int(notice.raised_at.timestamp())}@{mail.sender.rpartition('@')[2]}>"
    )
    message.set_content(text)
    try:
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
        raise NotSentError(f"the mail server {mail.host}:{mail.port} did not take it: {error}") from error
