"""What the environment says about the terminal. Apart from the settings, because `ork --help` needs no more than this."""

from __future__ import annotations

import os


def wants_colour(is_terminal: bool) -> bool:
    """`NO_COLOR` and `TERM=dumb` say no, `FORCE_COLOR` says yes, else a terminal gets colour."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR", "") not in ("", "0"):
        return True
    return is_terminal and os.environ.get("TERM") != "dumb"


def is_dumb_terminal() -> bool:
    return os.environ.get("TERM") == "dumb"


def wants_ascii() -> bool:
    """Whether the locale is C by name. Python takes that for UTF-8, and sets LC_CTYPE of its own process to C.UTF-8."""
    locale = os.environ.get("LC_ALL")
    if not locale:
        of_characters = os.environ.get("LC_CTYPE")
        locale = os.environ.get("LANG") if of_characters in (None, "", "C.UTF-8", "C.utf8") else of_characters
    return locale in ("C", "POSIX")
