"""Retries operations while an engine, a store or a disk is unavailable."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from ork.errors import AnswerLostError, DocumentError, EngineError, EngineUnreachableError, ObjectsError

if TYPE_CHECKING:
    from ork.executors.docker.container_documents import ContainerDocuments

FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 5.0
_TRIES = 6  # of operations that fail with an error of the engine

T = TypeVar("T")


async def retrying(act: Callable[[], Awaitable[T]], *, seconds: float = math.inf) -> T:
    """Repeat an operation until it succeeds or is refused, or the engine is unreachable for `seconds`.

    Only for operations that may be repeated: it is not always known whether the last try took effect.
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
            # The name of a container is reserved (409) before the container is visible.
            if (error.status < 500 and error.status != 409) or tries == _TRIES:
                raise
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


async def retrying_call(documents: ContainerDocuments, call: Callable[[], T]) -> T:
    """`retrying` for a call that reads or writes the attempt's documents."""
    return await retrying(lambda: documents.calls.call(call))
