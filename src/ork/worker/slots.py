"""Room in the environment, as the system's library keeps it, for what every task is told of itself.

A string that is given to `putenv` becomes part of the environment, and may be changed where it is. So it is given before
a process is forked, with room, and filled by whoever reads the process's order: to set a variable would touch a dozen
pages for each.
"""

from __future__ import annotations

from ork.worker.system import call_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAMES = ("ORK_RUN_ID", "ORK_TASK_ID", "ORK_TASK_NAME", "ORK_WORKFLOW_NAME", "ORK_ATTEMPT", "ORK_ATTEMPT_ID")
_SLOT = 128
SLOTS_BYTES = len(NAMES) * _SLOT
_FORM = "".join(f"{name}={{:\0<{_SLOT - len(name) - 1}}}" for name in NAMES)
_ENDS = "\0" * len(NAMES)
EMPTY = _FORM.format(*("" for _ in NAMES)).encode()
_kept: list[Any] = []  # the environment refers to it


def filled(values: list[str]) -> bytes | None:
    """What the slots hold with these values; None if they do not."""
    text = _FORM.format(*values)
    is_held = text.isascii() and len(text) == SLOTS_BYTES and text[_SLOT - 1 :: _SLOT] == _ENDS
    return text.encode() if is_held else None


def make_slots() -> Any:
    """A buffer that is part of this process's environment, and of all that are forked from it; None where there can be
    none."""
    call, putenv = call_of("putenv")
    if not putenv:
        return None
    from _ctypes import Array, _SimpleCData, addressof

    character = type("character", (_SimpleCData,), {"_type_": "c"})
    whole: Any = type("slots", (Array,), {"_type_": character, "_length_": SLOTS_BYTES})
    single: Any = type("slot", (Array,), {"_type_": character, "_length_": _SLOT})
    slots = whole()
    slots.raw = EMPTY
    _kept.append(slots)
    for start in range(0, SLOTS_BYTES, _SLOT):
        call(putenv, (single.from_address(addressof(slots) + start),))
    return slots
