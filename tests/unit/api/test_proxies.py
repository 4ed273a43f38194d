"""Which address, scheme and host a request has when a proxy stands in between."""

from __future__ import annotations

import pytest

from ork.api.proxies import TrustedProxies
from ork.errors import UsageError


def seen(peer: str, proxies: tuple[str, ...] = ("10.0.0.0/8", "::1"), **headers: str) -> tuple[str, str, str]:
    """Address, scheme and host."""
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"client": (peer, 5000), "scheme": "http", "headers": [(b"host", b"ork:8700"), *given]}
    result = TrustedProxies(proxies).as_sent(scope)
    return result["client"][0], result["scheme"], dict(result["headers"])[b"host"].decode()


FORWARDED = {"x_forwarded_for": "192.0.2.7", "x_forwarded_proto": "https", "x_forwarded_host": "ork.example"}


@pytest.mark.parametrize("peer", ["203.0.113.9", "11.0.0.1", "", "::2"])
def test_what_a_stranger_says_about_itself_does_not_count(peer: str) -> None:
    assert seen(peer, **FORWARDED) == (peer, "http", "ork:8700")
    assert seen(peer, proxies=(), **FORWARDED) == (peer, "http", "ork:8700")


@pytest.mark.parametrize("peer", ["10.1.2.3", "::1", "::ffff:10.1.2.3"])
def test_what_a_trusted_proxy_says_counts(peer: str) -> None:
    assert seen(peer, **FORWARDED) == ("192.0.2.7", "https", "ork.example")


def test_a_proxy_that_says_nothing_changes_nothing() -> None:
    assert seen("10.1.2.3") == ("10.1.2.3", "http", "ork:8700")
    assert seen("10.1.2.3", x_forwarded_proto="gopher")[1] == "http"


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("1.1.1.1, 192.0.2.7", "192.0.2.7"),  # the client made the first one up
        ("1.1.1.1, 192.0.2.7, 10.9.9.9", "192.0.2.7"),
        ("10.9.9.9, 10.8.8.8", "10.9.9.9"),
        ("192.0.2.7:4711", "192.0.2.7"),
        ("[2001:db8::7]:4711", "2001:db8::7"),
        ("2001:db8::7", "2001:db8::7"),
        ("192.0.2.7, unknown", "10.1.2.3"),
        ("unknown", "10.1.2.3"),
    ],
)
def test_the_client_is_the_last_address_that_is_no_proxy(forwarded: str, client: str) -> None:
    assert seen("10.1.2.3", x_forwarded_for=forwarded)[0] == client


@pytest.mark.parametrize("text", ["proxy.local", "10.0.0.0/40", "", "*"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="neither an IP address nor a network"):
        TrustedProxies([text])
