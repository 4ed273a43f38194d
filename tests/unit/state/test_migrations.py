"""The numbers of migrations: two steps with the same number would leave some stores with only one of them."""

from __future__ import annotations

import pytest

from ork.state.postgres import schema as postgres
from ork.state.sql import load_migrations
from ork.state.sqlite import schema as sqlite


@pytest.mark.parametrize("folder", [sqlite.FOLDER, postgres.FOLDER], ids=["sqlite", "postgres"])
def test_each_migration_has_a_number_of_its_own_and_none_is_missing(folder: str) -> None:
    numbers = [migration.number for migration in load_migrations(folder)]
    assert numbers == list(range(1, len(numbers) + 1))
