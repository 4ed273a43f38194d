"""Which values are stored in which form. A project's own codecs (`codecs` in ork.yaml) come first."""

from __future__ import annotations

import sys

from ork.worker.data import tables
from ork.worker.data.media_types import BYTES, NPY, PARQUET

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Encoded:
    """How a value is written, and what is said of it."""

    __slots__ = ("codec", "facts", "media_type", "preview", "type", "write")

    def __init__(
        self,
        codec: str,
        type: str,
        media_type: str,
        write: Callable[[Any], None],
        facts: dict[str, Any],
        preview: Callable[[], dict[str, Any] | None],
    ) -> None:
        self.codec = codec
        self.type = type
        self.media_type = media_type
        self.write = write
        self.facts = facts
        self.preview = preview


def encoded(value: Any) -> Encoded | None:
    """How the value is stored; None if it is no table, array or bytes."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        from ork.worker.data.previews import of_bytes

        return Encoded(
            "bytes", "bytes", BYTES, lambda sink: sink.write(value), {}, lambda: of_bytes(bytes(value[:4096]))
        )
    part_rows = tables.PART_ROWS
    sdk = sys.modules.get("ork.sdk.files")
    if sdk is not None and isinstance(value, sdk.Table):
        value, part_rows = value.frame, value.part_rows
    library = tables.library_of(value)
    if library is not None:
        return _table(value, library, part_rows)
    numpy = sys.modules.get("numpy")
    if numpy is not None and isinstance(value, getattr(numpy, "ndarray", ())):
        return _array(value, numpy)
    return None


def _table(value: Any, library: str, part_rows: int) -> Encoded:
    from ork.worker.data.previews import of_table

    kind = (
        f"{library}.{type(value).__name__}" if type(value).__module__.partition(".")[0] == library else _base(library)
    )
    table = tables.prepared(value, library)
    return Encoded(
        "parquet",
        kind,
        PARQUET,
        lambda sink: tables.write(table, library, sink, part_rows),
        tables.describe(table, library, part_rows),
        lambda: of_table(table, library),
    )


def _base(library: str) -> str:
    """For a subclass of somebody else: it comes back as what it is made of."""
    return "pyarrow.Table" if library == "pyarrow" else f"{library}.DataFrame"


def _array(value: Any, numpy: Any) -> Encoded | None:
    if value.dtype.hasobject:
        return None  # `.npy` would need pickle
    from ork.worker.data.previews import of_array

    facts = {"shape": list(value.shape), "dtype": str(value.dtype)}

    def write(sink: Any) -> None:
        numpy.lib.format.write_array(sink, value, allow_pickle=False)

    return Encoded("npy", "numpy.ndarray", NPY, write, facts, lambda: of_array(value, numpy))


class ProjectCodecs:
    """The codecs of a project: classes with `types` (a tuple of classes), `write(value, file)` and `read(file)`; optional are
    `media_type`, `describe(value)` and `preview(value)`, which return JSON. Loaded when first needed."""

    def __init__(self, targets: dict[str, str]) -> None:
        self._targets = targets
        self._loaded: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        """The codec of this name. LookupError if the project has none."""
        if name not in self._targets:
            raise LookupError(f"the project has no codec `{name}` (`codecs` in ork.yaml)")
        if name not in self._loaded:
            from importlib import import_module

            module, _, attribute = self._targets[name].partition(":")
            self._loaded[name] = getattr(import_module(module), attribute)()
        return self._loaded[name]

    def encoded(self, value: Any) -> Encoded | None:
        """How a codec of the project stores the value; None if none of them does."""
        for name in self._targets:
            codec = self.get(name)
            if isinstance(value, tuple(codec.types)):
                return self._by(name, codec, value)
        return None

    def _by(self, name: str, codec: Any, value: Any) -> Encoded:
        kind = type(value)
        facts = dict(codec.describe(value)) if hasattr(codec, "describe") else {}
        preview = codec.preview if hasattr(codec, "preview") else lambda _value: None
        return Encoded(
            name,
            f"{kind.__module__}.{kind.__qualname__}",
            getattr(codec, "media_type", BYTES),
            lambda sink: codec.write(value, sink),
            {"facts": facts} if facts else {},
            lambda: preview(value),
        )
