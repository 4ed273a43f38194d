"""The variables of the scheduler's environment that tasks inherit: a fixed list, and those named by `pass_env`.

All others are dropped, since a service's environment may hold credentials.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

# Program paths, user, folders, language, time zone and trusted certificates.
NAMES = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "PWD", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TMP", "TEMP",
        "TERM", "COLUMNS", "LINES", "NO_COLOR", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "CARGO_HOME", "RUSTUP_HOME",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_CERT",
    }
)  # fmt: skip
PREFIXES = ("LC_", "PYTHON")
OWN = "ORK_"


def inherited(environ: Mapping[str, str], pass_env: Sequence[str] = ()) -> dict[str, str]:
    """The part of `environ` that tasks inherit. Ork's own variables are never passed."""
    names = NAMES.union(name for name in pass_env if not name.endswith("*"))
    prefixes = (*PREFIXES, *(name[:-1] for name in pass_env if name.endswith("*")))
    return {
        name: value
        for name, value in environ.items()
        if (name in names or name.startswith(prefixes)) and not name.startswith(OWN)
    }


class Environment:
    """The inherited part of this process's environment; computed again only when it changes."""

    def __init__(self, pass_env: Sequence[str]) -> None:
        self.pass_env = pass_env
        self._seen: dict[bytes, bytes] | None = None
        self._inherited: dict[bytes, bytes] = {}

    def variables(self) -> Mapping[bytes, bytes]:
        # The undecoded variables: one dict that can be compared quickly.
        now: dict[bytes, bytes] = os.environ._data  # type: ignore[attr-defined]
        if now != self._seen:
            self._seen = dict(now)
            kept = inherited(os.environ, self.pass_env)
            self._inherited = {os.fsencode(name): os.fsencode(value) for name, value in kept.items()}
        return self._inherited
