"""Where an outgoing call may go."""

from __future__ import annotations

import pytest

from ork.alerts.addresses import NotSentError, check_url, is_public, open_connection
from tests.loopback import loopback


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8"])
def test_public_addresses_may_be_reached(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "224.0.0.1", "100.64.0.1",
        "::1", "::", "fe80::1%eth0", "fc00::1", "::ffff:127.0.0.1", "2002:7f00:1::", "64:ff9b::7f00:1",
    ],
)  # fmt: skip
def test_private_and_special_addresses_may_not(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "url", ["ftp://example.org", "file:///etc/passwd", "https://", "http://a b", "http://[::1", ""]
)
def test_only_whole_http_urls_are_called(url: str) -> None:
    with pytest.raises(NotSentError):
        check_url(url)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1"])
def test_a_private_address_is_refused_however_it_is_written(host: str) -> None:
    with loopback() as site:
        port = site.url.rpartition(":")[2]
        with pytest.raises(NotSentError, match=r"private|no address"):
            open_connection(check_url(f"http://{host}:{port}/"), allow_private=False, timeout=5)
        assert site.asked == []
