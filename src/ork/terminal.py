"""Terminal settings from the environment. Separate from `ork.settings`, because `ork --help` needs only these."""

from __future__ import annotations

import os


def wants_colour(is_terminal: bool) -> bool:
    """`NO_COLOR` and `TERM=dumb` disable colour, `FORCE_COLOR` enables it; the default is colour on terminals."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "") not in ("", "0"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"


def is_dumb_terminal() -> bool:
    return os.environ.get("TERM") == "dumb"


def wants_ascii() -> bool:
    """Whether the user's locale is C. Python treats it as UTF-8 and sets its own LC_CTYPE to C.UTF-8, which is ignored."""
    locale = os.environ.get("LC_ALL")
    if not locale:
        ctype = os.environ.get("LC_CTYPE")
        locale = os.environ.get("LANG") if ctype in (None, "", "C.UTF-8", "C.utf8") else ctype
    return locale in ("C", "POSIX")
