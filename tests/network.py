"""A network of our own for tests: a switch, and a namespace for each party that is plugged into it.

Whoever is cut off hears nothing and is told nothing: no reset, no "unreachable", as behind a dead router. Where namespaces
cannot be made, tests that need them skip and say why.
"""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from itertools import count

import pytest

_numbers = count(1)
_SUBNET = "10.77.0"


class Network:
    def __init__(self) -> None:
        self._name = f"ork{os.getpid()}-{next(_numbers)}"
        self._parties: list[str] = []
        self._switch = self._add_namespace("switch")
        _ip("-n", self._switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "bridge", "up")

    def join(self, party: str) -> str:
        """The address of a new party."""
        namespace, port = self._add_namespace(party), f"to-{party}"
        number = len(self._parties) + 1
        self._parties.append(party)
        _ip("-n", self._switch, "link", "add", port, "type", "veth",
            "peer", "name", "eth0", "netns", namespace, "address", _mac(number))  # fmt: skip
        _ip("-n", self._switch, "link", "set", port, "master", "bridge", "up")
        for link in ("lo", "eth0"):
            _ip("-n", namespace, "link", "set", link, "up")
        _ip("-n", namespace, "address", "add", f"{_address(number)}/24", "dev", "eth0")
        self._introduce(number)
        return _address(number)

    def inside(self, party: str) -> list[str]:
        """What a command line begins with to run there."""
        return ["nsenter", f"--net=/run/netns/{self._name}-{party}"]

    def cut(self, party: str) -> None:
        _ip("-n", self._switch, "link", "set", f"to-{party}", "down")

    def heal(self, party: str) -> None:
        _ip("-n", self._switch, "link", "set", f"to-{party}", "up")

    def remove(self) -> None:
        for party in ("switch", *self._parties):
            subprocess.run(["ip", "netns", "del", f"{self._name}-{party}"], capture_output=True)

    def _add_namespace(self, party: str) -> str:
        _ip("netns", "add", f"{self._name}-{party}")
        return f"{self._name}-{party}"

    def _introduce(self, newest: int) -> None:
        """Neighbours know each other for good: otherwise who asks for one that is cut off is told "no route"."""
        for number in range(1, newest):
            for here, there in ((number, newest), (newest, number)):
                namespace = f"{self._name}-{self._parties[here - 1]}"
                _ip("-n", namespace, "neighbour", "replace", _address(there), "lladdr", _mac(there),
                    "dev", "eth0", "nud", "permanent")  # fmt: skip


def network_or_skip() -> Network:
    reason = _why_not()
    if reason is not None:
        pytest.skip(reason)
    return Network()


@functools.cache
def _why_not() -> str | None:
    """Why there can be no network of our own here, or None."""
    if shutil.which("ip") is None or shutil.which("nsenter") is None:
        return "no network can be cut: the programs `ip` (iproute2) and `nsenter` are missing"
    try:
        trial = Network()
        trial.join("trial")
    except OSError as error:
        return f"no network can be cut: namespaces cannot be made here ({error})"
    trial.remove()
    return None


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise OSError(f"ip {' '.join(words)}: {done.stderr.strip()}")


def _address(number: int) -> str:
    return f"{_SUBNET}.{number}"


def _mac(number: int) -> str:
    return f"02:00:00:00:00:{number:02x}"
