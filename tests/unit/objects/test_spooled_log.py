"""A log that is uploaded in chunks, while its writer has other things to do."""

from __future__ import annotations

import os

from ork.objects.memory import MemoryObjects
from ork.objects.spooled_log import LARGEST_CHUNK, SpooledLog

ATTEMPT = "a1b2c3d4e5f6/load/0/1"


def test_a_long_log_is_uploaded_a_part_at_a_time() -> None:
    """A worker writes heartbeats between the parts."""
    documents = MemoryObjects()
    log = SpooledLog(documents, ATTEMPT)
    os.write(log.fileno(), b"x" * (2 * LARGEST_CHUNK + 1))
    assert log.flush()
    assert documents.log_size(ATTEMPT) == LARGEST_CHUNK
    assert log.due(now=10.0) == 10.0, "the rest need not wait"
    assert log.flush()
    assert not log.flush()
    assert documents.log_size(ATTEMPT) == 2 * LARGEST_CHUNK + 1
    assert log.due(now=10.0) is None


def test_closing_uploads_all_that_is_left() -> None:
    documents = MemoryObjects()
    log = SpooledLog(documents, ATTEMPT)
    os.write(log.fileno(), b"x" * (3 * LARGEST_CHUNK))
    log.close()
    assert documents.log_size(ATTEMPT) == 3 * LARGEST_CHUNK
