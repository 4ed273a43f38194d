"""Databases by URL: SQLite from the standard library, Postgres with any installed driver."""

from __future__ import annotations

import re
from typing import Any, Protocol

Rows = list[dict[str, Any]]

# Tokens that may contain a colon without being a parameter; then casts; then parameters.
_TOKENS = re.compile(
    r"""'(?:[^']|'')*' | "(?:[^"]|"")*" | --[^\n]* | /\*.*?\*/ | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$ | :: | :(?P<name>[A-Za-z_]\w*)""",
    re.S | re.X,
)
_BUSY_SECONDS = 30.0


class SqlError(Exception):
    """An error of the database; `is_temporary` if a retry may help."""

    def __init__(self, message: str, *, is_temporary: bool = True) -> None:
        super().__init__(message)
        self.is_temporary = is_temporary


class SqlConnection(Protocol):
    def execute(self, query: str, values: dict[str, Any], *, limit: int) -> tuple[Rows | None, int]:
        """The rows (None for a statement without rows) and the number of changed rows. The transaction is committed."""
        ...

    def give_up(self) -> None: ...

    def close(self) -> None: ...


def connect(url: str) -> SqlConnection:
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "sqlite":
        return SqliteConnection(_sqlite_path(rest))
    if separator and scheme in ("postgresql", "postgres"):
        return _postgres(url)
    raise SqlError(
        f"`{scheme[:40]}` is not a supported database: use sqlite:///file or postgresql://…", is_temporary=False
    )


def parameters_of(query: str) -> list[str]:
    """The names of the parameters in a query, without duplicates, in order."""
    found = (match["name"] for match in _TOKENS.finditer(query))
    return list(dict.fromkeys(name for name in found if name))


def bound_values(query: str, values: dict[str, Any]) -> dict[str, Any]:
    """A value for each parameter. Raises SqlError naming the missing ones."""
    names = parameters_of(query)
    missing = [name for name in names if name not in values]
    if missing:
        listed = ", ".join(f"`:{name}`" for name in missing)
        given = ", ".join(values) or "none"
        raise SqlError(f"the query needs {listed}; inputs: {given}", is_temporary=False)
    return {name: _as_parameter(values[name]) for name in names}


def _as_parameter(value: Any) -> Any:
    if not isinstance(value, (dict, list)):
        return value
    import json

    return json.dumps(value, ensure_ascii=False)


def _sqlite_path(rest: str) -> str:
    """Like SQLAlchemy: three slashes before a relative path, four before an absolute one."""
    path = rest.removeprefix("/")
    if not path:
        raise SqlError("the URL names no file: write sqlite:///path/to/file.db", is_temporary=False)
    return path


class SqliteConnection:
    def __init__(self, path: str) -> None:
        import sqlite3

        self._errors = sqlite3
        try:
            # Disable its implicit transactions: there is exactly one, from the first statement to the last.
            self._connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        except sqlite3.Error as error:
            raise SqlError(f"cannot open {path}: {error}", is_temporary=False) from None

    def execute(self, query: str, values: dict[str, Any], *, limit: int) -> tuple[Rows | None, int]:
        bound = bound_values(query, values)
        try:
            if not bound and limit == 0:
                return self._execute_script(query)
            self._connection.execute("BEGIN")
            cursor = self._connection.execute(query, bound)
            rows = _rows_of(cursor, limit)
            self._connection.execute("COMMIT")
            return rows, max(cursor.rowcount, 0)
        except self._errors.Error as error:
            raise SqlError(str(error), is_temporary=isinstance(error, self._errors.OperationalError)) from None

    def _execute_script(self, query: str) -> tuple[None, int]:
        before = self._connection.total_changes
        self._connection.executescript(f"BEGIN;\n{query}\n;COMMIT;")
        return None, self._connection.total_changes - before

    def give_up(self) -> None:
        self._connection.interrupt()

    def close(self) -> None:
        self._connection.close()


def _postgres(url: str) -> SqlConnection:
    from importlib import import_module

    for name, make in (("psycopg", DbApiConnection), ("psycopg2", DbApiConnection), ("pg8000", Pg8000Connection)):
        try:
            driver = import_module(name if name != "pg8000" else "pg8000.dbapi")
        except ImportError:
            continue
        return make(driver, url)
    try:
        return AsyncpgConnection(import_module("asyncpg"), url)
    except ImportError:
        pass
    raise SqlError(
        "no Postgres driver in the project's Python: install psycopg, psycopg2, pg8000 or asyncpg", is_temporary=False
    )


class DbApiConnection:
    """psycopg and psycopg2: parameters as `%(name)s`."""

    def __init__(self, driver: Any, url: str) -> None:
        self._driver = driver
        try:
            self._connection = self._open(url)
        except driver.Error as error:
            raise SqlError(f"cannot connect: {_first_line(error)}") from None

    def _open(self, url: str) -> Any:
        return self._driver.connect(url)

    def execute(self, query: str, values: dict[str, Any], *, limit: int) -> tuple[Rows | None, int]:
        bound = bound_values(query, values)
        try:
            cursor = self._connection.cursor()
            # Without values the text is not interpreted, so percent signs are safe.
            cursor.execute(*self._statement(query, bound)) if bound else cursor.execute(query)
            rows = _rows_of(cursor, limit)
            self._connection.commit()
            return rows, max(cursor.rowcount, 0)
        except self._driver.Error as error:
            temporary = isinstance(error, self._driver.OperationalError)
            raise SqlError(_first_line(error), is_temporary=temporary) from None

    def _statement(self, query: str, bound: dict[str, Any]) -> tuple[str, Any]:
        return _in_style(query, "%({})s"), bound

    def give_up(self) -> None:
        cancel = getattr(self._connection, "cancel", None)
        if cancel is not None:
            cancel()

    def close(self) -> None:
        self._connection.close()


class Pg8000Connection(DbApiConnection):
    """Like DbApiConnection, but with numbered parameters and separate connection arguments."""

    def _open(self, url: str) -> Any:
        from urllib.parse import unquote, urlsplit

        parts = urlsplit(url)
        self._driver.paramstyle = "numeric"
        return self._driver.connect(
            user=unquote(parts.username or "postgres"),
            password=unquote(parts.password) if parts.password else None,
            host=parts.hostname or "localhost",
            port=parts.port or 5432,
            database=parts.path.lstrip("/") or None,
        )

    def _statement(self, query: str, bound: dict[str, Any]) -> tuple[str, Any]:
        return _numbered(query, bound, ":{}"), list(bound.values())


class AsyncpgConnection:
    """asyncpg: parameters as `$1`, with its own event loop."""

    def __init__(self, driver: Any, url: str) -> None:
        import asyncio

        self._driver = driver
        self._runner = asyncio.Runner()
        try:
            self._connection = self._runner.run(driver.connect(url))
        except (driver.PostgresError, OSError) as error:
            self._runner.close()
            raise SqlError(f"cannot connect: {_first_line(error)}") from None

    def execute(self, query: str, values: dict[str, Any], *, limit: int) -> tuple[Rows | None, int]:
        bound = bound_values(query, values)
        try:
            return self._runner.run(self._execute(_numbered(query, bound, "${}"), list(bound.values()), limit))
        except self._driver.PostgresError as error:
            raise SqlError(_first_line(error), is_temporary=False) from None
        except (OSError, self._driver.InterfaceError) as error:
            raise SqlError(_first_line(error)) from None

    async def _execute(self, text: str, values: list[Any], limit: int) -> tuple[Rows | None, int]:
        if not values and limit == 0:
            return None, _changed(await self._connection.execute(text))
        async with self._connection.transaction():
            statement = await self._connection.prepare(text)
            records = await statement.fetch(*values)
            changed = _changed(statement.get_statusmsg())
        if not statement.get_attributes():
            return None, changed
        _check_limit(len(records), limit)
        return [dict(record) for record in records], changed

    def give_up(self) -> None:
        self._connection.terminate()

    def close(self) -> None:
        self._runner.run(self._connection.close())
        self._runner.close()


def _numbered(query: str, bound: dict[str, Any], style: str) -> str:
    numbers = {name: style.format(number) for number, name in enumerate(bound, 1)}
    return _TOKENS.sub(lambda match: numbers[match["name"]] if match["name"] else match[0], query)


def _in_style(query: str, style: str) -> str:
    """Write parameters in the style of the driver; percent signs of the query are doubled."""
    parts, end = [], 0
    for match in _TOKENS.finditer(query):
        if match["name"]:
            parts += [query[end : match.start()].replace("%", "%%"), style.format(match["name"])]
            end = match.end()
    return "".join([*parts, query[end:].replace("%", "%%")])


def _rows_of(cursor: Any, limit: int) -> Rows | None:
    if cursor.description is None:
        return None
    names = [column[0] for column in cursor.description]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise SqlError(f"two columns are named `{twice[0]}`: give one an alias", is_temporary=False)
    found = cursor.fetchmany(limit + 1) if limit else []
    _check_limit(len(found), limit)
    return [dict(zip(names, row, strict=True)) for row in found]


def _check_limit(count: int, limit: int) -> None:
    if limit and count > limit:
        raise SqlError(f"more than {limit} rows: select fewer, or raise `limit`", is_temporary=False)


def _changed(status: str | None) -> int:
    """The number of rows in a status such as `INSERT 0 3`, `UPDATE 3` or `SELECT 3`."""
    last = (status or "").rpartition(" ")[2]
    return int(last) if last.isdigit() else 0


def _first_line(error: BaseException) -> str:
    """psycopg adds the position in the query, pg8000 raises a dictionary."""
    first = error.args[0] if error.args else None
    if isinstance(first, dict) and "M" in first:
        return str(first["M"])
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
