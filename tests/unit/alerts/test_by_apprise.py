"""Notices through Apprise: over real sockets, to an HTTP and a mail server on this machine."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading

import pytest

from ork.alerts.channels import read_channels
from ork.errors import UsageError
from ork.model.outbound import OutboundRule
from ork.outbound.guarded import RefusedConnectionError, permitted_connections
from ork.telemetry import TelemetryEvent
from tests.loopback import loopback
from tests.unit.alerts.desk import Desk, desk, mail_server

pytest.importorskip("apprise", reason="apprise is not installed: nothing is sent through it")


def reasons(at: Desk) -> list[str]:
    """Why something was not sent, as it comes to be told."""
    told: list[str] = []
    at.telemetry.listen(
        lambda what, fields: told.append(fields["why"]) if what == TelemetryEvent.ALERT_FAILED else None
    )
    return told


def test_a_service_gets_title_text_and_kind() -> None:
    with loopback() as site:
        site.answers["/hook"] = (200, {})
        at = desk({"ops": {"apprise": {"secret": "HOOK"}, "on": "run", "template": "{workflow}: {error}"}})
        at.secrets["HOOK"] = site.url.replace("http://", "json://") + "/hook"
        assert at.deliver() is None
        (asked,) = site.asked
    body = json.loads(asked.body)
    assert (body["message"], body["type"]) == ("flow: exited with 1", "failure")
    assert body["title"].endswith(" failed")


def test_mail_goes_through_it_as_well() -> None:
    with mail_server() as (port, letters):
        at = desk(
            {"ops": {"apprise": f"mailto://127.0.0.1:{port}/?from=ork@example.org&to=a@example.org", "on": "task"}}
        )
        assert at.deliver() is None
    (letter,) = letters
    assert "flow: task load failed" in letter
    assert "a@example.org" in letter


def test_a_rejected_alert_is_retried_and_its_url_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    with loopback() as site:
        site.answers["/hush"] = (500, {})
        at = desk({"ops": {"apprise": site.url.replace("http", "json") + "/hush"}})
        told = reasons(at)
        assert at.deliver() is not None
    assert len(told) == 2
    assert all("did not accept it" in why and "hush" not in why for why in told)
    assert [record for record in caplog.records if record.name.startswith("apprise")] == []


@pytest.mark.parametrize("scheme", ["json", "mailto", "xml"])
def test_a_private_address_is_not_reached_unless_allowed(scheme: str) -> None:
    with loopback() as site:
        at = desk(
            {"ops": {"apprise": site.url.replace("http", scheme) + "/hook?from=o@b.example&to=a@b.example"}},
            rule=OutboundRule(),
        )
        told = reasons(at)
        assert at.deliver() is not None
        assert site.asked == []
    assert all("127.0.0.1 is not a public address" in why and "outbound: {allow: [" in why for why in told)


def test_an_unsupported_url_is_not_reported_either() -> None:
    at = desk({"ops": {"apprise": "nosuch://user:hush@example.org"}})
    told = reasons(at)
    assert at.deliver() is not None
    assert told == ["ops: Apprise does not support its URL"] * 2


def test_the_guard_holds_for_its_own_thread_only_and_while_it_lasts() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        with permitted_connections(OutboundRule()) as guard:
            for family, place in ((socket.AF_INET, address), (socket.AF_UNIX, "/nowhere")):
                with socket.socket(family) as mine, pytest.raises(RefusedConnectionError):
                    mine.connect(place)
            assert "127.0.0.1 is not a public address" in str(guard.refused)
            another = threading.Thread(target=lambda: socket.create_connection(address, 5).close())
            another.start()
            another.join()
            assert listening.accept()
        socket.create_connection(address, 5).close()


def test_without_its_package_an_address_of_it_is_refused_at_the_start() -> None:
    script = (
        "import sys; sys.modules['apprise'] = None\n"
        "from ork.alerts.channels import read_channels\n"
        "read_channels({'ops': {'apprise': 'json://example.org'}})"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (
        "ork.errors.UsageError: alerts.ops in ork.yaml needs the package apprise, which is not installed" in done.stderr
    )


def test_apprise_excludes_other_transports() -> None:
    with pytest.raises(UsageError, match="exactly one of webhook, slack, mail, apprise"):
        read_channels({"ops": {"apprise": "json://example.org", "webhook": "https://example.org"}})
