"""locations.yaml is as strict as a workflow."""

from __future__ import annotations

from pathlib import Path

import pytest

from ork.definition.locations_file import load_locations
from ork.definition.schema import locations_schema
from ork.model.location import EVERY_FIVE_MINUTES, Location, Lookup

DIGEST = "sha256:" + "0" * 64


def test_every_key_arrives() -> None:
    found, problems = load_locations(
        b"""
- name: etl
  image: registry.example.org:5000/team/etl:latest
  refresh: "@hourly"
- {name: local, image: hello, pull: never}
- {name: flows, path: ../flows}
"""
    )
    assert problems == ()
    assert found == (
        Location("etl", image="registry.example.org:5000/team/etl:latest", refresh="0 * * * *"),
        Location("local", image="hello", pull=Lookup.NEVER),
        Location("flows", path="../flows", refresh=EVERY_FIVE_MINUTES),
    )


@pytest.mark.parametrize("data", [b"", b"# none yet\n", b"[]\n"])
def test_an_empty_file_has_no_locations(data: bytes) -> None:
    assert load_locations(data) == ((), ())


@pytest.mark.parametrize(
    ("data", "code", "line", "column"),
    [
        (b"name: etl\n", "ORK103", 1, 1),
        (b"- {name: etl}\n", "ORK701", 1, 3),
        (b"- {name: etl, image: a, path: b}\n", "ORK701", 1, 3),
        (b"- {name: etl, path: b, pull: never}\n", "ORK701", 1, 30),
        (b"- {image: a}\n", "ORK102", 1, 3),
        (b"- {name: etl, image: a, tag: b}\n", "ORK101", 1, 25),
        (b"- {name: etl, image: a, refresh: daily}\n", "ORK301", 1, 34),
        (b"- {name: etl, image: a, refresh: 0 0 31 2 *}\n", "ORK302", 1, 34),
        (b"- {name: etl, image: 'https://host/a'}\n", "ORK703", 1, 22),
        (b"- {name: etl, image: A}\n", "ORK703", 1, 22),
        (b"- {name: etl, image: a, pull: sometimes}\n", "ORK104", 1, 31),
        (b"- {name: etl, path: a}\n- {name: etl, path: b}\n", "ORK702", 2, 10),
        (b"- {name: a b, path: a}\n", "ORK105", 1, 10),
    ],
)
def test_a_mistake_has_its_code_and_its_place(data: bytes, code: str, line: int, column: int) -> None:
    _, problems = load_locations(data)
    assert [(each.code, each.line, each.column) for each in problems] == [(code, line, column)]
    assert problems[0].file == "locations.yaml"


@pytest.mark.parametrize(
    "image",
    [
        "etl",
        "team/etl:1.0",
        "localhost:5000/etl",
        "ghcr.io/a/b-c/d_e:v1",
        f"host/etl@{DIGEST}",
        f"host/etl:1@{DIGEST}",
        "[::1]:5000/a",
    ],
)
def test_images_are_named_as_registries_name_them(image: str) -> None:
    ((location,), problems) = load_locations(f'- {{name: x, image: "{image}"}}'.encode())
    assert (location.image, problems) == (image, ())


def test_the_schema_knows_the_same_keys() -> None:
    schema = locations_schema()
    assert set(schema["$defs"]["location"]["properties"]) == {"name", "image", "path", "refresh", "pull"}
    assert schema["$defs"]["location"]["required"] == ["name"]


def test_the_sample_of_locations_loads_as_written() -> None:
    sample = Path(__file__).parents[2] / "samples" / "locations.yaml"
    found, problems = load_locations(sample.read_bytes())
    registry = "us-central1-docker.pkg.dev/my-project/workflows"
    assert problems == ()
    assert [(location.name, location.image, location.refresh) for location in found] == [
        ("etl", f"{registry}/etl:latest", "*/15 * * * *"),
        ("ml-pipelines", f"{registry}/ml:latest", "0 * * * *"),
    ]


@pytest.mark.parametrize(
    ("data", "code"), [(b"locations: etl", "ORK103"), (b"places: []", "ORK103"), (b"locations: []\nmore: 1", "ORK101")]
)
def test_a_mistake_next_to_the_list_is_reported(data: bytes, code: str) -> None:
    assert [problem.code for problem in load_locations(data)[1]] == [code]
