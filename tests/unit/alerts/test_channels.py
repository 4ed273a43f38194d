"""Who can be told: what ork.yaml may say, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ork.alerts.channels import Channel, Mail, read_channels, recipients
from ork.errors import UsageError
from ork.model.notice import NoticeKind
from ork.model.workflow import Secret


def test_each_name_leads_to_a_webhook_slack_or_mail() -> None:
    channels = read_channels(
        {
            "plain": "https://example.org/hook",
            "ops": {"webhook": {"secret": "HOOK"}, "on": ["run", "missed"], "every_workflow": True},
            "chat": {"slack": "https://hooks.example.org/x", "template": "{workflow}: {error}"},
            "post": {"mail": {"to": "a@example.org", "host": "mail", "tls": "starttls", "user": "u", "password": {"secret": "P"}}},
        }
    )  # fmt: skip
    assert channels["plain"] == Channel("plain", webhook="https://example.org/hook")
    assert channels["ops"].webhook == Secret("HOOK")
    assert channels["ops"].kinds == {NoticeKind.RUN, NoticeKind.MISSED}
    assert channels["chat"].template == "{workflow}: {error}"
    assert channels["post"].mail == Mail(("a@example.org",), "a@example.org", "mail", 587, "u", Secret("P"), "starttls")


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({}, "exactly one"),
        ({"webhook": "https://a", "slack": "https://b"}, "exactly one"),
        ({"webhok": "https://a"}, "`webhok`"),
        ({"webhook": 7}, "neither text"),
        ({"webhook": "https://a", "on": ["success"]}, "`on`"),
        ({"webhook": "https://a", "template": "{password}"}, "{password}"),
        ({"webhook": "https://a", "template": "{workflow.__class__}"}, "no field"),
        ({"webhook": "https://a", "template": "half a {"}, "no field"),
        ({"mail": {"to": "nobody"}}, "`to`"),
        ({"mail": {"to": "a@b\r\nBcc: c@d"}}, "`to`"),
        ({"mail": {"to": "a@b", "tls": "maybe"}}, "`tls`"),
        ({"mail": {"to": "a@b", "port": 0}}, "`port`"),
        (7, "not a map"),
    ],
)
def test_an_invalid_channel_is_rejected_with_its_position(given: Any, word: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_channels({"ops": given})
    assert "alerts.ops" in caught.value.message
    assert word in caught.value.message


def test_recipients_are_the_named_channels_and_those_for_all_workflows() -> None:
    channels = read_channels(
        {
            "named": "https://a",
            "other": "https://b",
            "everything": {"webhook": "https://c", "every_workflow": True},
            "failures": {"webhook": "https://d", "every_workflow": True, "on": "run"},
        }
    )
    assert [c.name for c in recipients(channels, ["named"], NoticeKind.RUN)] == ["everything", "failures", "named"]
    assert [c.name for c in recipients(channels, [], NoticeKind.TASK)] == ["everything"]
