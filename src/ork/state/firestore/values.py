"""Python values and the values of documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from google.cloud.firestore_v1.types import common, document, firestore, query, write

Value: Any = document.Value.meta.pb
DocumentMessage: Any = document.Document.meta.pb
Write: Any = write.Write.meta.pb
Precondition: Any = common.Precondition.meta.pb
CommitRequest: Any = firestore.CommitRequest.meta.pb
BatchGetRequest: Any = firestore.BatchGetDocumentsRequest.meta.pb
QueryRequest: Any = firestore.RunQueryRequest.meta.pb
CountRequest: Any = firestore.RunAggregationQueryRequest.meta.pb
ListenRequest: Any = firestore.ListenRequest.meta.pb
StructuredQuery: Any = query.StructuredQuery.meta.pb

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class ServerTime:
    """As the value of a field: the moment at which the service handles the request."""


SERVER_TIME = ServerTime()


def micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def moment_of(number: int) -> datetime:
    return _EPOCH + number * _MICROSECOND


def stamp_micros(stamp: Any) -> int:
    return int(stamp.seconds) * 1_000_000 + int(stamp.nanos) // 1000


def encoded(value: Any) -> Any:
    """The message of a value. Text from outside may hold lone surrogates, which are escaped."""
    if value is None:
        return Value(null_value=0)
    if isinstance(value, bool):
        return Value(boolean_value=value)
    if isinstance(value, int):
        return Value(integer_value=value)
    if isinstance(value, float):
        return Value(double_value=value)
    if isinstance(value, str):
        return Value(string_value=clean(value))
    if isinstance(value, bytes):
        return Value(bytes_value=value)
    if isinstance(value, Mapping):
        message = Value()
        message.map_value.SetInParent()
        for key, each in value.items():
            message.map_value.fields[key].CopyFrom(encoded(each))
        return message
    if isinstance(value, datetime):
        message, number = Value(), micros(value)
        message.timestamp_value.seconds, message.timestamp_value.nanos = number // 1_000_000, number % 1_000_000 * 1000
        return message
    if isinstance(value, Iterable):
        message = Value()
        message.array_value.SetInParent()
        message.array_value.values.extend(encoded(each) for each in value)
        return message
    raise TypeError(f"{type(value).__name__} cannot be kept in a document")


def clean(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def decoded(value: Any) -> Any:
    kind = value.WhichOneof("value_type")
    if kind == "null_value" or kind is None:
        return None
    if kind == "map_value":
        return {key: decoded(each) for key, each in value.map_value.fields.items()}
    if kind == "array_value":
        return [decoded(each) for each in value.array_value.values]
    if kind == "timestamp_value":
        return moment_of(stamp_micros(value.timestamp_value))
    return getattr(value, kind)


def field_path(*names: str) -> str:
    """The names of nested fields, quoted where they are not simple."""
    return ".".join(name if name.isidentifier() and name.isascii() else f"`{_escaped(name)}`" for name in names)


def _escaped(name: str) -> str:
    return name.replace("\\", "\\\\").replace("`", "\\`")
