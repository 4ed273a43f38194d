"""Which addresses the scheduler may connect to."""

from __future__ import annotations

import pytest

from ork.model.outbound import OutboundRule, is_public, parse_allowed


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_public_addresses_may_be_reached(address: str) -> None:
    assert is_public(address)
    assert OutboundRule().permits(address, "x", 80)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "169.254.169.254", "0.0.0.0", "0.1.2.3", "224.0.0.1",
        "100.64.0.1", "192.0.0.1", "192.0.0.9", "192.0.0.170", "168.63.129.16", "198.18.0.1", "255.255.255.255",
        "240.0.0.1", "100.100.100.200",
        "::1", "::", "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1", "2001:db8::1", "fd00:ec2::254", "100::1",
        "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "2002:7f00:1::", "2002:a9fe:a9fe::",
        "64:ff9b::7f00:1", "64:ff9b:1::808:808", "2001:0:7f00:1::", "2606:4700::5efe:10.0.0.1", "no address",
    ],
)  # fmt: skip
def test_private_and_special_addresses_may_not(address: str) -> None:
    assert not is_public(address)
    assert not OutboundRule().permits(address, "x", 80)


@pytest.mark.parametrize(
    ("entry", "address", "host", "port"),
    [
        ("127.0.0.1", "127.0.0.1", "localhost", 80),
        ("127.0.0.1:8080", "127.0.0.1", "x", 8080),
        ("10.0.0.0/8", "::ffff:10.1.2.3", "x", 80),
        ("[::1]:8080", "::1", "::1", 8080),
        ("jobs.internal", "10.1.2.3", "Jobs.Internal.", 80),
        ("*.internal:443", "fc00::1", "a.internal", 443),
        ("169.254.169.254", "169.254.169.254", "metadata", 80),
    ],
)
def test_the_list_allows_addresses_networks_and_names(entry: str, address: str, host: str, port: int) -> None:
    assert OutboundRule((parse_allowed(entry),)).permits(address, host, port)


@pytest.mark.parametrize(
    ("entry", "address", "host", "port"),
    [
        ("127.0.0.1:8080", "127.0.0.1", "x", 80),
        ("127.0.0.1", "127.0.0.2", "127.0.0.1", 80),
        ("jobs.internal", "10.1.2.3", "jobs.internal.evil.example", 80),
        ("0.0.0.0/0", "169.254.169.254", "x", 80),
        ("169.254.0.0/16", "169.254.169.254", "x", 80),
        ("*", "168.63.129.16", "x", 80),
    ],
)
def test_it_allows_nothing_else_and_metadata_only_by_its_own_address(
    entry: str, address: str, host: str, port: int
) -> None:
    assert not OutboundRule((parse_allowed(entry),)).permits(address, host, port)


@pytest.mark.parametrize("text", ["", "a b", "x:y", "1.2.3.4:0", "1.2.3.4:99999", "http://x", "..", "a/b"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r".*"):
        parse_allowed(text)
