from __future__ import annotations

import pandas as pd
import polars as pl

import ork


def orders() -> pd.DataFrame:
    return pd.DataFrame({"id": range(10_000), "city": ["Ulm", "Bonn", None, "Kiel"] * 2500, "amount": 2.5})


def clean(orders: pl.DataFrame) -> pl.DataFrame:
    """The same table, as the library that this function likes."""
    return orders.drop_nulls()


def split(clean: pd.DataFrame) -> ork.Table:
    return ork.Table(clean, part_rows=2000)


def add_up(item: pd.DataFrame) -> pd.DataFrame:
    """One part of the table."""
    return item.groupby("city", as_index=False)["amount"].sum()


def report(add_up: list[pd.DataFrame]) -> dict[str, float]:
    totals = pd.concat(add_up).groupby("city")["amount"].sum()
    return {city: float(amount) for city, amount in totals.items()}
