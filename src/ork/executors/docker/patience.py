"""Trying again while an engine, a store or a disk is out of reach."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from ork.errors import AnswerLostError, DocumentError, EngineError, EngineUnreachableError, ObjectsError

if TYPE_CHECKING:
    from ork.executors.docker.papers import Papers

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 5.0
_TRIES = 6  # of what the engine says it failed to do

T = TypeVar("T")


async def patiently(act: Callable[[], Awaitable[T]], *, seconds: float = math.inf) -> T:
    """Again and again, until it is done or refused; that no engine was there for so many seconds is told as well.

    For what may be done any number of times: whether it was done the last time is not always known.
    """
    pause, tries, give_up_at = FIRST_PAUSE_SECONDS, 0, time.monotonic() + seconds
    while True:
        try:
            return await act()
        except DocumentError:
            raise
        except EngineUnreachableError:
            if time.monotonic() > give_up_at:
                raise
        except (AnswerLostError, ObjectsError, OSError):
            pass
        except EngineError as error:
            tries += 1
            # A name is taken before its container can be seen.
            if (error.status < 500 and error.status != 409) or tries == _TRIES:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


async def said(papers: Papers, word: Callable[[], T]) -> T:
    """The same for a plain call that reads or writes the attempt's documents."""
    return await patiently(lambda: papers.calls.call(word))
