"""Functions and methods that are computed during an import, because they only depend on known values."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

MAX_ITEMS = 10_000
NOT_KNOWN = object()
_TEXT_METHODS = frozenset(
    [
        "capitalize",
        "casefold",
        "endswith",
        "format",
        "join",
        "lower",
        "lstrip",
        "partition",
        "removeprefix",
        "removesuffix",
        "replace",
        "rpartition",
        "rsplit",
        "rstrip",
        "split",
        "splitlines",
        "startswith",
        "strip",
        "title",
        "upper",
        "zfill",
        "isdigit",
        "isalpha",
        "count",
        "find",
        "index",
    ]
)
_DICT_METHODS = frozenset(["get", "items", "keys", "values", "copy", "update", "pop", "setdefault"])
_LIST_METHODS = frozenset(["append", "extend", "insert", "copy", "index", "count", "pop", "remove", "reverse", "sort"])
_TIME_METHODS = frozenset(
    [
        "replace",
        "strftime",
        "isoformat",
        "date",
        "total_seconds",
        "weekday",
        "timestamp",
        "add",
        "subtract",
        "to_date_string",
        "format",
    ]
)


def _range(*args: int) -> list[int]:
    found = range(*args)
    if len(found) > MAX_ITEMS:
        raise ValueError("too many items")
    return list(found)


def _enumerate(items: Any, start: int = 0) -> list[tuple[int, Any]]:
    return list(enumerate(_items(items), start))


def _zip(*lists: Any) -> list[tuple[Any, ...]]:
    return list(zip(*map(_items, lists), strict=False))


def _items(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple | dict | set | str):
        raise TypeError("unknown items")
    return list(value)


def _datetime(*args: Any, **keywords: Any) -> datetime:
    zone = keywords.pop("tz", None) or keywords.pop("tzinfo", None)
    found = datetime(*args[:7], **keywords)
    return found.replace(tzinfo=zone_of(zone)) if zone is not None else found


def zone_of(value: Any) -> ZoneInfo | None:
    """The time zone of a text or of a zone; None if it is unknown."""
    if isinstance(value, ZoneInfo):
        return value
    name = value if isinstance(value, str) else "UTC" if value is UTC else None
    try:
        return None if name is None else ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return None


def _zone(name: str = "UTC") -> ZoneInfo:
    return ZoneInfo(name)


def _duration(**keywords: Any) -> timedelta:
    days = keywords.pop("days", 0) + 30 * keywords.pop("months", 0) + 365 * keywords.pop("years", 0)
    return timedelta(days=days, **keywords)


def _days_ago(_days: int, **_keywords: Any) -> datetime:
    return datetime(2020, 1, 1, tzinfo=UTC)  # the day does not matter: only its zone and its time of day


def _parsed_time(text: str, *_rest: Any, **_keywords: Any) -> datetime:
    return datetime.fromisoformat(text)


def _range_set(*args: Any) -> list[Any]:
    return list(dict.fromkeys(_items(args[0]))) if args else []


KNOWN_CALLS: dict[str, Callable[..., Any]] = {
    "builtins.range": _range,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.len": lambda value: len(_items(value)),
    "builtins.list": lambda value=(): _items(value),
    "builtins.tuple": lambda value=(): tuple(_items(value)),
    "builtins.set": _range_set,
    "builtins.dict": lambda *args, **keywords: dict(*args, **keywords),
    "builtins.str": lambda value="": str(value) if isinstance(value, str | int | float | bool) else _refuse(),
    "builtins.int": int,
    "builtins.float": float,
    "builtins.bool": bool,
    "builtins.sorted": lambda value: sorted(_items(value)),
    "builtins.reversed": lambda value: list(reversed(_items(value))),
    "builtins.max": lambda *values: max(*values),
    "builtins.min": lambda *values: min(*values),
    "builtins.sum": lambda value: sum(_items(value)),
    "datetime.datetime": _datetime,
    "datetime.datetime.fromisoformat": _parsed_time,
    "datetime.timedelta": timedelta,
    "datetime.timezone.utc": lambda: ZoneInfo("UTC"),
    "airflow.utils.dates.days_ago": _days_ago,
    "airflow.utils.dates.datetime": _datetime,
    "airflow.utils.dates.timedelta": timedelta,
    "airflow.utils.timezone.datetime": lambda *args, **keywords: _datetime(*args, **keywords, tz="UTC"),
    "pendulum.datetime": lambda *args, **keywords: _datetime(*args, **({"tz": "UTC"} | keywords)),
    "pendulum.DateTime": _datetime,
    "pendulum.duration": _duration,
    "pendulum.timezone": _zone,
    "pendulum.parse": _parsed_time,
    "pendulum.today": lambda *args, **_keywords: datetime(2020, 1, 1, tzinfo=zone_of(args[0] if args else "UTC")),
    "pendulum.yesterday": lambda *args, **_keywords: datetime(2020, 1, 1, tzinfo=zone_of(args[0] if args else "UTC")),
    "pendulum.now": lambda *args, **_keywords: datetime(2020, 1, 1, tzinfo=zone_of(args[0] if args else "UTC")),
    "pytz.timezone": _zone,
    "zoneinfo.ZoneInfo": _zone,
    "dateutil.relativedelta.relativedelta": _duration,
    "textwrap.dedent": textwrap.dedent,
    "json.dumps": lambda value, **_keywords: json.dumps(value),
    "copy.deepcopy": lambda value: _copied(value),
    "copy.copy": lambda value: _copied(value),
}


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _refuse() -> Any:
    raise ValueError("unknown text")


def data_method(owner: Any, name: str, args: list[Any], keywords: dict[str, Any]) -> Any:
    """The result of a method of plain data; NOT_KNOWN if it is not one of a few."""
    match owner:
        case str():
            is_known = name in _TEXT_METHODS and all(_is_plain(each) for each in (*args, *keywords.values()))
        case dict():
            is_known = name in _DICT_METHODS
        case list():
            is_known = name in _LIST_METHODS
        case datetime() | timedelta():
            is_known = name in _TIME_METHODS and all(_is_plain(each) for each in (*args, *keywords.values()))
        case _:
            return NOT_KNOWN
    if not is_known:
        return NOT_KNOWN
    if isinstance(owner, datetime) and name in ("add", "subtract"):
        delta = _duration(**keywords)
        return owner + delta if name == "add" else owner - delta
    found = getattr(owner, name)(*args, **keywords)
    return list(found) if name in ("items", "keys", "values") else found


def _is_plain(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, str | int | float | bool | ZoneInfo)
