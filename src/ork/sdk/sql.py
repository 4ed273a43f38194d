"""The executor `sql`: runs a query; its rows are the output. Inputs are bound parameters, never part of the text."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from ork.sdk.context import Context
from ork.sdk.errors import TaskError
from ork.sdk.sql_drivers import SqlConnection, SqlError, connect

FETCHES = ("all", "one", "none")


@dataclass
class SqlDefaults:
    """Settings in ork.yaml: the default database of all tasks of this executor."""

    url: str | None = None


class SqlExecutor:
    """One statement (or several, with `fetch: none` and without parameters) in one transaction."""

    @dataclass
    class TaskConfig:
        url: str | None = None
        query: str | None = None
        file: str | None = None
        fetch: str = "all"
        limit: int = 100_000  # rows

    def __init__(self, config: SqlDefaults) -> None:
        self._defaults = config
        self._connection: SqlConnection | None = None

    def run(self, context: Context, config: TaskConfig, inputs: dict[str, Any]) -> Any:
        """`:name` in the query is the input of that name; lists and objects are passed as JSON text."""
        query = _query(config)
        if config.fetch not in FETCHES:
            raise TaskError(f"`fetch: {config.fetch}` is none of {', '.join(FETCHES)}", retry=False)
        url = config.url or self._defaults.url
        if url is None:
            raise TaskError("no database: give `url` in the task's config or in ork.yaml", retry=False)
        try:
            self._connection = connect(url)
            try:
                rows, changed = self._connection.execute(
                    query, inputs, limit=0 if config.fetch == "none" else config.limit
                )
            finally:
                self._connection.close()
        except SqlError as error:
            raise TaskError(str(error), retry=error.is_temporary) from None
        context.metrics.set("rows", changed if rows is None else len(rows))
        if rows is None or config.fetch == "none":
            return {"changed": changed}
        return (rows[0] if rows else None) if config.fetch == "one" else rows

    def stop(self, context: Context) -> None:
        context.log.info("the query is given up")
        if self._connection is not None:
            self._connection.give_up()


def _query(config: SqlExecutor.TaskConfig) -> str:
    if (config.query is None) == (config.file is None):
        raise TaskError("give the query as `query` or in a `file`, and not as both", retry=False)
    if config.query is not None:
        return config.query
    path = os.path.abspath(str(config.file))
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"cannot read the query in {config.file}: {error}", retry=False) from None
