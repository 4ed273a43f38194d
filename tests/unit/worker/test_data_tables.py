"""Tables and arrays: what is stored, what is said of it, and as what it is read. Skipped where the libraries are not installed."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from ork.model.value_reference import parts_of
from ork.objects.keyed import KeyedDocuments
from ork.objects.local import LocalObjects
from ork.objects.memory import MemoryObjects
from ork.sdk.files import File, Table
from ork.worker.call.results import LateValues, result_text
from ork.worker.convert.annotations import describe
from ork.worker.convert.scalars import ConversionError
from ork.worker.convert.values import convert
from ork.worker.data.errors import ResultError
from ork.worker.data.inputs import InputValues, as_they_were

pd = pytest.importorskip(
    "pandas", reason="tests of tables need pandas, polars, pyarrow and numpy: pip install '.[test]'"
)
pl = pytest.importorskip("polars", reason="tests of tables need polars")
pa = pytest.importorskip("pyarrow", reason="tests of tables need pyarrow")
np = pytest.importorskip("numpy", reason="tests of tables need numpy")

SPEC = {"attempt": "run1/make/0/1"}
LIMIT = 1 << 20


class Store:
    """One that has files, or one that has parts."""

    def __init__(self, objects: KeyedDocuments, folder: Path) -> None:
        self.objects, self._folder = objects, folder

    def kept(self, value: Any) -> Any:
        text = result_text(value, LIMIT, LateValues(self.objects, SPEC))
        return json.loads(text or "null")

    def read(self, value: Any, annotation: Any = None) -> Any:
        found = InputValues(self.objects, str(self._folder), None).in_place(value)
        return as_they_were(found) if annotation is None else convert(found, annotation)

    def preview(self, reference: Any) -> Any:
        return json.loads(self.objects.read_value(reference["$ork"]["object"] + "-preview"))


@pytest.fixture(params=["files", "parts"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    objects = LocalObjects(str(tmp_path / "objects")) if request.param == "files" else MemoryObjects()
    return Store(objects, tmp_path / "inputs")


def frame(rows: int = 1000) -> Any:
    return pd.DataFrame({
        "id": range(rows), "name": [f"n{number}" if number % 3 else None for number in range(rows)],
        "day": pd.Timestamp("2026-01-31"), "share": np.linspace(0, 1, rows),
    })  # fmt: skip


KINDS = [
    (lambda: frame(), "pandas.DataFrame"),
    (lambda: pl.from_pandas(frame()), "polars.DataFrame"),
    (lambda: pl.from_pandas(frame()).lazy(), "polars.LazyFrame"),
    (lambda: pa.Table.from_pandas(frame()), "pyarrow.Table"),
    (lambda: pa.Table.from_pandas(frame()).to_batches()[0], "pyarrow.RecordBatch"),
]


@pytest.mark.parametrize(("make", "kind"), KINDS, ids=[kind for _, kind in KINDS])
def test_a_table_of_any_library_arrives_as_any_other(store: Store, make: Any, kind: str) -> None:
    reference = store.kept(make())
    description = reference["$ork"]
    assert (description["type"], description["codec"], description["rows"], description["parts"]) == (
        kind,
        "parquet",
        1000,
        1,
    )
    assert [column["name"] for column in description["columns"]] == ["id", "name", "day", "share"]
    was = store.read(reference)
    assert f"{type(was).__module__.partition('.')[0]}.{type(was).__name__}" == kind
    for wanted in (pd.DataFrame, pl.DataFrame, pa.Table, pa.RecordBatch):
        found = store.read(reference, wanted)
        assert isinstance(found, wanted)
        rows = (
            found.to_dict("list")
            if wanted is pd.DataFrame
            else found.to_dict(as_series=False)
            if wanted is pl.DataFrame
            else found.to_pydict()
        )
        assert (rows["id"], rows["share"][-1]) == (list(range(1000)), 1.0)
    assert store.read(reference, pl.LazyFrame).select(pl.len()).collect().item() == 1000
    assert store.read(reference, File).read_bytes() == store.read(reference, bytes)
    assert pd.read_parquet(store.read(reference, File).path).shape == (1000, 4)


def test_a_frame_of_pandas_comes_back_as_it_was(store: Store) -> None:
    made = frame().set_index("id")
    assert store.read(store.kept(made)).equals(made)


def test_a_frame_may_be_empty(store: Store) -> None:
    reference = store.kept(frame(0))
    assert (reference["$ork"]["rows"], reference["$ork"]["parts"], len(store.read(reference))) == (0, 0, 0)


def test_arrays_and_values_in_values(store: Store) -> None:
    array = np.arange(12.0).reshape(3, 4)
    found = store.kept({"array": array, "twice": [array, 1], "frames": [frame(2), frame(3)], "raw": b"\0\1"})
    assert found["array"] == found["twice"][0], "a value that occurs twice is stored once"
    assert found["array"]["$ork"]["shape"] == [3, 4]
    read = store.read(found)
    assert np.array_equal(read["array"], array)
    assert ([len(each) for each in read["frames"]], read["raw"], read["twice"][1]) == ([2, 3], b"\0\1", 1)
    assert [type(each) for each in store.read(found["frames"], list[pl.DataFrame])] == [pl.DataFrame] * 2
    assert np.array_equal(store.read(found["array"], np.ndarray), array)


@pytest.mark.parametrize("wanted", [pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.Table])
def test_parts_are_read_alone_and_make_up_the_whole(store: Store, wanted: Any) -> None:
    for value in (frame(), pl.from_pandas(frame())):
        description = store.kept(Table(value, part_rows=300))["$ork"]
        assert description["parts"] == 4
        parts = [store.read(part, wanted) for part in parts_of(description)]
        ids = [(part.collect() if wanted is pl.LazyFrame else part)["id"] for part in parts]
        assert [number for each in ids for number in (each.to_pylist() if wanted is pa.Table else list(each))] == list(
            range(1000)
        )
    with pytest.raises(ConversionError, match="expected File, got some rows of a"):
        store.read(parts_of(description)[0], File)


def test_a_preview_has_rows_types_and_histograms(store: Store) -> None:
    for make, _ in KINDS:
        preview = store.preview(store.kept(make()))
        names = [column["name"] for column in preview["columns"]]
        assert (names, len(preview["rows"]), preview["sampled"]) == (["id", "name", "day", "share"], 20, 1000)
        share = preview["columns"][3]["histogram"]
        assert (share["low"], share["high"], sum(share["counts"])) == (0, 1, 1000)
        assert preview["columns"][1]["nulls"] == 334
        assert preview["rows"][0][:2] == [0, None]
        assert preview["rows"][1][2].startswith("2026-01-31")


def test_what_does_not_fit_says_so(store: Store) -> None:
    reference = store.kept(frame())
    for wanted, said in (
        (int, "int"),
        (np.ndarray, "numpy.ndarray"),
        (date, "date"),
        (list[int], "a list"),
        (dict, "dict"),
    ):
        with pytest.raises(ConversionError, match=rf"expected {said}, got a pandas.DataFrame of 1,000 rows"):
            store.read(reference, wanted)
    assert store.read(reference, pd.DataFrame | None) is not None
    assert store.read({"a": reference}, dict[str, Any])["a"].shape == (1000, 4)
    with pytest.raises(ResultError, match="it cannot be stored as parquet"):
        store.kept(pd.DataFrame({"a": [{1: object()}]}))
    with pytest.raises(ResultError, match=r"returned numpy\.ndarray: cannot be stored as JSON"):
        store.kept(np.array([object()]))


def test_a_missing_package_is_named(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    with pytest.raises(
        ResultError, match=r"storing a table of pandas needs the package `pyarrow`.*pip install pyarrow"
    ):
        store.kept(frame())


def test_annotations_have_types() -> None:
    for kind in (pd.DataFrame, pl.DataFrame, pl.LazyFrame, pa.Table, pa.RecordBatch):
        assert describe(kind) == "table"
    assert (describe(np.ndarray), describe(bytes), describe(File)) == ("array", "bytes", "file")
    assert describe(list[pd.DataFrame]) == {"list": "table"}
    assert describe(np.typing.NDArray[np.float64]) == "array"
