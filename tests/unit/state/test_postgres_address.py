"""What a store URL says: to the driver, to us, and to whoever reads a message."""

from __future__ import annotations

import pytest

from ork.errors import UsageError
from ork.state.urls import without_password

pytest.importorskip("asyncpg", reason="asyncpg is not installed: nothing is tried on Postgres")

from ork.state.postgres.address import POOL_SIZE, read_address


def test_our_own_parameters_are_kept_from_the_driver() -> None:
    address = read_address(
        "postgresql://me@h1:1,h2:2/db?pool_size=3&target_session_attrs=read-write&pooler=transaction"
    )
    assert address.shown == "postgresql://me@h1:1,h2:2/db?target_session_attrs=read-write"
    assert (address.pool_size, address.statement_cache_size, address.behind_pooler) == (3, 0, True)


def test_each_of_several_hosts_can_be_asked_by_itself() -> None:
    address = read_address("postgresql://me:a%40,b@h1:1,h2:2/db?target_session_attrs=read-write")
    assert address.dsns == (
        "postgresql://me:a%40,b@h1:1/db?target_session_attrs=read-write",
        "postgresql://me:a%40,b@h2:2/db?target_session_attrs=read-write",
    )
    assert read_address("postgresql:///db?host=/run").dsns == ("postgresql:///db?host=%2Frun",)


def test_without_parameters_ten_connections_at_most_and_statements_are_kept_prepared() -> None:
    address = read_address("postgresql:///db?host=/run/postgresql")
    assert address.pool_size == POOL_SIZE == 10
    assert address.statement_cache_size > 0
    assert not address.behind_pooler


def test_statements_need_not_be_kept_prepared() -> None:
    assert read_address("postgresql://h/db?statement_cache_size=0").statement_cache_size == 0


@pytest.mark.parametrize("query", ["pool_size=many", "pool_size=-1", "pooler=session", "statement_cache_size="])
def test_values_that_make_no_sense_are_refused(query: str) -> None:
    with pytest.raises(UsageError):
        read_address(f"postgresql://h/db?{query}")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:secret@h/db", "postgresql://me@h/db"),
        ("postgres://me:se%40cret@h:1,i:2/db?x=1&password=secret", "postgres://me@h:1,i:2/db?x=1"),
        ("postgresql:///db?host=/run&sslpassword=secret", "postgresql:///db?host=/run"),
        ("sqlite:/tmp/a:b@c.db", "sqlite:/tmp/a:b@c.db"),
    ],
)
def test_what_is_shown_has_no_password(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_messages_of_a_store_have_no_password() -> None:
    import asyncio

    from ork.errors import StoreUnavailableError
    from ork.state.postgres import PostgresStore

    store = PostgresStore("postgresql://me:geheim@127.0.0.1:1/db")
    with pytest.raises(StoreUnavailableError) as caught:
        asyncio.run(store.signing_key())
    assert "geheim" not in caught.value.message
    assert "me@127.0.0.1:1" in caught.value.message
