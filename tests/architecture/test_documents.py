"""What is written about Ork agrees with what is there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6}\s+(.*)$", re.M)
FENCED = re.compile(r"^```.*?^```", re.M | re.S)
NAMED_FILE = re.compile(r"`([\w/]+\.py)`")
TREE = Path(__file__).resolve().parents[2]


def pages() -> list[Path]:
    return sorted([*TREE.glob("*.md"), *(TREE / "docs").rglob("*.md")])


def examples() -> list[Path]:
    return sorted([*TREE.glob("examples/*/workflow.yaml"), *TREE.glob("examples/*/workflow.py")])


def links(page: Path) -> Iterator[str]:
    for target in LINK.findall(FENCED.sub("", page.read_text())):
        if "://" not in target and not target.startswith("mailto:"):
            yield target


def anchors(page: Path) -> set[str]:
    """As the usual renderers make them from headings."""
    headings = HEADING.findall(FENCED.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(TREE)))
def test_every_link_leads_somewhere(page: Path) -> None:
    for link in links(page):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.name}: {link}"


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "docs/contributing.md", "docs/workers.md"])
def test_every_file_that_is_named_exists(page: str) -> None:
    """A file may be named by the end of its path, where the text around it says in which folder it is."""
    files = [
        "/" + str(path.relative_to(TREE))
        for folder in ("src", "tests", "perf")
        for path in (TREE / folder).rglob("*.py")
    ]
    named = NAMED_FILE.findall((TREE / page).read_text())
    assert named
    assert [name for name in named if not any(file.endswith("/" + name) for file in files)] == []


def test_every_page_is_listed_in_the_index() -> None:
    listed = {(TREE / "docs" / link.partition("#")[0]).resolve() for link in links(TREE / "docs" / "index.md")}
    assert {page for page in (TREE / "docs").glob("*.md") if page.name != "index.md"} - listed == set()


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_every_example_is_listed(page: str) -> None:
    text = (TREE / page).read_text()
    paths = [str(path.relative_to(TREE)) for path in examples()]
    assert paths
    assert [path for path in paths if path not in text] == []


def test_the_sample_in_the_readme_is_the_example() -> None:
    sample = re.search(r"```yaml\n(.*?)```", (TREE / "README.md").read_text(), re.S)
    assert sample is not None
    example = (TREE / "examples/etl/workflow.yaml").read_text()
    assert sample.group(1) in example


@pytest.mark.parametrize("example", examples(), ids=lambda path: path.parent.name)
def test_every_example_says_what_it_shows(example: Path) -> None:
    assert example.read_text().startswith("# ")


def test_make_targets_named_in_the_readme_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (TREE / "Makefile").read_text(), re.M))
    named = set(re.findall(r"make ([a-z]+)", (TREE / "README.md").read_text()))
    assert named
    assert named <= targets
