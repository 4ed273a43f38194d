"""Notices leave the store: over a real HTTP server and a real mail server on this machine."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

from ork.alerts.outbox import MAX_TRIES
from ork.model.outbound import OutboundRule
from ork.telemetry import TelemetryEvent
from tests.conformance.state_samples import NOW
from tests.loopback import Loopback, loopback
from tests.unit.alerts.desk import Desk, desk, mail_server


def bodies(site: Loopback) -> list[dict[str, Any]]:
    return sorted((json.loads(asked.body) for asked in site.asked), key=lambda body: str(body.get("id")))


def test_a_failed_task_and_its_run_are_sent_once_each() -> None:
    with loopback() as site:
        site.answers["/hook"] = (200, {})
        at = desk({"ops": f"{site.url}/hook", "others": f"{site.url}/elsewhere"})
        assert at.deliver() is None
        assert at.deliver() is None
        assert [(body["kind"], body["task"]) for body in bodies(site)] == [("task", "load"), ("run", None)]
        assert bodies(site)[1]["error"] == {"kind": "exit", "message": "exited with 1"}
        keys = {f"ork-alert-{body['id']}" for body in bodies(site)}
        assert {asked.headers["Idempotency-Key"] for asked in site.asked} == keys
        assert len(keys) == 2
        assert at.telemetry.counts[TelemetryEvent.ALERT_SENT] == 2


def test_a_rejected_alert_is_retried_with_growing_delays() -> None:
    with loopback() as site:
        site.answers["/hook"] = [(503, {}), (503, {}), (503, {}), (503, {}), (200, {})]
        at = desk({"ops": f"{site.url}/hook"})
        assert at.deliver() == NOW + timedelta(seconds=10)
        assert at.deliver() == NOW + timedelta(seconds=10)
        assert len(site.asked) == 2
        at.now = NOW + timedelta(seconds=10)
        assert at.deliver() == at.now + timedelta(seconds=20)
        at.now += timedelta(seconds=20)
        assert at.deliver() is None
        assert len(site.asked) == 6


def test_only_channels_that_failed_are_retried() -> None:
    with loopback() as site:
        site.answers |= {"/good": (200, {}), "/bad": [(500, {}), (500, {}), (200, {})]}
        at = desk({"ops": f"{site.url}/good", "boss": {"webhook": f"{site.url}/bad", "every_workflow": True}})
        at.deliver()
        at.now += timedelta(seconds=60)
        assert at.deliver() is None
        assert site.count("POST", "/good") == 2
        assert site.count("POST", "/bad") == 4


def test_retries_are_limited() -> None:
    with loopback() as site:
        site.answers["/hook"] = (500, {})
        at = desk({"ops": {"webhook": f"{site.url}/hook", "on": "run"}})
        due = at.deliver()
        while due is not None:
            at.now = due
            due = at.deliver()
        assert len(site.asked) == MAX_TRIES


def test_a_redirect_is_not_followed() -> None:
    with loopback() as site:
        site.answers |= {"/hook": (302, {}), "/inside": (200, {})}
        at = desk({"ops": f"{site.url}/hook"})
        assert at.deliver() is not None
        assert {asked.path for asked in site.asked} == {"/hook"}


def test_a_private_address_is_not_reached_unless_allowed() -> None:
    with loopback() as site:
        site.answers["/hook"] = (200, {})
        at = desk({"ops": f"{site.url}/hook"}, rule=OutboundRule())
        told: list[str] = []
        at.telemetry.listen(lambda _what, fields: told.append(fields["why"]))
        assert at.deliver() is not None
        assert site.asked == []
        assert all("outbound: {allow: [" in why and "/hook" not in why for why in told)


def test_an_address_may_be_a_secret() -> None:
    with loopback() as site:
        site.answers["/hook"] = (200, {})
        at = desk({"ops": {"webhook": {"secret": "HOOK"}}})
        at.secrets["HOOK"] = f"{site.url}/hook"
        assert at.deliver() is None
        assert len(site.asked) == 2


def test_slack_gets_a_text_by_the_template_and_nothing_in_it_is_evaluated() -> None:
    with loopback() as site:
        site.answers["/slack"] = (200, {})
        template = "{{{kind}}} {workflow}/{task}: {error}"
        at = desk({"ops": {"slack": f"{site.url}/slack", "template": template, "on": "task"}})
        at.deliver()
        assert [json.loads(asked.body) for asked in site.asked] == [{"text": "{task} flow/load: exited with 1"}]


def test_alerts_without_recipients_are_removed() -> None:
    at = desk({}, named=())
    assert at.deliver() is None
    assert asyncio.run(at.store.take_alerts(10, NOW + timedelta(days=1))) == ()


def test_mail_arrives_with_its_subject_and_words() -> None:
    with mail_server() as (port, letters):
        mail = {"to": ["a@example.org", "b@example.org"], "from": "ork@example.org", "host": "127.0.0.1", "port": port}
        at = desk({"ops": {"mail": mail, "on": "task"}})
        assert at.deliver() is None
    (letter,) = letters
    assert "Subject: flow: task load failed" in letter
    assert "To: a@example.org, b@example.org" in letter
    assert f"Date: {format_datetime(NOW)}" in letter
    assert "exited with 1" in letter


def test_a_loop_sends_what_it_is_woken_for_and_ends_with_what_is_due() -> None:
    with loopback() as site:
        site.answers["/hook"] = (200, {})

        async def work() -> None:
            at = Desk({"ops": f"{site.url}/hook"})
            loop = asyncio.create_task(at.outbox.run())
            await at.fail()
            at.outbox.wake()
            await at.outbox.finish(loop, 10.0)

        asyncio.run(work())
        assert len(site.asked) == 2
