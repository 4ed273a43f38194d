"""Calls `wake_url` when a task has ended, to start a tick. A failed call is harmless."""

from __future__ import annotations

from ork.objects.documents import wake_proof

TIMEOUT_SECONDS = 3.0
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


def wake(url: str, attempt: str, secret: str) -> bool:
    """Whether the call succeeded. It contains a proof made with the attempt's key, and no credential.

    Only https is used, or http on this machine, so that run ids are not disclosed.
    """
    from http.client import HTTPConnection, HTTPException, HTTPSConnection
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return False
    if not host or not (parts.scheme == "https" or (parts.scheme == "http" and host in _LOOPBACK)):
        return False
    make = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = make(host, port, timeout=TIMEOUT_SECONDS)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    headers = {"Content-Length": "0", "X-Ork-Attempt": attempt, "X-Ork-Proof": wake_proof(attempt, secret)}
    try:
        connection.request("POST", path, headers=headers)
        return connection.getresponse().status < 300
    except (OSError, HTTPException, ValueError):
        return False
    finally:
        connection.close()
