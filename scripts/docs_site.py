"""Builds the documentation as a site: `make docs` writes it to build/site.

The pages are plain Markdown in `docs`, and links between them work in any viewer. This script makes a copy for the generator:
files outside of `docs` that pages link to (examples, deployment files) become pages of their own, and the navigation follows the
tables in docs/index.md. The configuration is that of MkDocs, which Zensical and others read.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SOURCE = ROOT / "build/docs"
SITE = ROOT / "build/site"
MAX_FILE = 100_000
LANGUAGES = {
    ".py": "python", ".yaml": "yaml", ".yml": "yaml", ".sh": "sh", ".rs": "rust", ".tf": "hcl", ".toml": "toml", ".sql": "sql",
    ".json": "json", ".service": "ini", ".timer": "ini", ".conf": "ini", ".pl": "perl",
}  # fmt: skip
CONFIG = {
    "site_name": "Ork",
    "site_description": "A workflow orchestrator for data and batch code: plain functions, scripts, nothing running while nothing is due.",
    "site_url": "",
    "use_directory_urls": False,
    "docs_dir": "docs",
    "site_dir": "site",
    "theme": {
        "name": "material",
        "font": False,  # nothing is loaded from elsewhere
        "features": ["navigation.sections", "navigation.top", "navigation.footer", "content.code.copy", "search.highlight"],
        "palette": [
            {"media": "(prefers-color-scheme: light)", "scheme": "default", "toggle": {"icon": "lucide/sun", "name": "Dark"}},
            {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "toggle": {"icon": "lucide/moon", "name": "Light"}},
        ],
    },
    "plugins": ["search"],
    "markdown_extensions": [
        "tables", "attr_list", "md_in_html", {"toc": {"permalink": True}}, "pymdownx.highlight", "pymdownx.superfences",
    ],
}  # fmt: skip
_LINK = re.compile(r"(\]\(|(?:src|srcset)=\")([^)\"#:\s]+)(#[^)\"]*)?(\)|\")")
_ROW = re.compile(r"^\| \[([^\]]+)\]\(([^)#]+)[^)]*\) \|", re.M)


class Pages:
    """Copies pages into the generator's folder, and makes pages of the files that they link to."""

    def __init__(self) -> None:
        self._tracked = _tracked_files()
        self._made: set[Path] = set()

    def copy(self, page: Path) -> Path:
        """The copy of a Markdown file, relative to SOURCE."""
        target = _place(page)
        if target not in self._made:
            self._made.add(target)
            text = _LINK.sub(lambda link: self._relinked(page, target, link), page.read_text())
            _write(target, text)
        return target

    def _relinked(self, page: Path, at: Path, link: re.Match[str]) -> str:
        start, path, anchor, end = link[1], link[2], link[3] or "", link[4]
        linked = Path(os.path.normpath(page.parent / path))
        if not linked.exists():
            raise SystemExit(f"{page}: there is no {path}")
        if linked.suffix == ".md":
            target = self.copy(linked)
        elif linked.is_relative_to(DOCS) and linked.is_dir():
            target = self._listed(linked)
        elif linked.is_relative_to(DOCS):
            target = _place(linked)
            _copy_file(linked, target)
        else:
            target, anchor = self._shown(linked)
        return f"{start}{os.path.relpath(target, at.parent)}{anchor}{end}"

    def _listed(self, folder: Path) -> Path:
        """A page with links to the pages of a folder."""
        target = _place(folder) / "index.md"
        if target not in self._made:
            self._made.add(target)
            rows = [f"- [{_title(page)}]({page.name})" for page in sorted(folder.glob("*.md"))]
            _write(target, "\n".join([f"# {folder.name}", "", *rows]))
        return target

    def _shown(self, linked: Path) -> tuple[Path, str]:
        """The page of a file or folder, and the anchor of the file on it."""
        folder = linked if linked.is_dir() else linked.parent
        target = Path("source") / folder.relative_to(ROOT) / "index.md"
        files = (
            [file for file in self._tracked if file.is_relative_to(folder)]
            if linked.is_dir()
            else sorted(file for file in self._tracked if file.parent == folder)
        )
        if target not in self._made:
            self._made.add(target)
            _write(target, "\n".join([f"# {folder.relative_to(ROOT)}", *(_as_text(file, folder) for file in files)]))
        return target, "" if linked.is_dir() else f"#{_slug(linked.name)}"


def _tracked_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return sorted(ROOT / name for name in listed.split("\0") if name)


def _place(file: Path) -> Path:
    """Pages of `docs` keep their names; others are below `source`."""
    return file.relative_to(DOCS) if file.is_relative_to(DOCS) else Path("source") / file.relative_to(ROOT)


def _as_text(file: Path, folder: Path) -> str:
    try:
        text = file.read_text() if file.stat().st_size <= MAX_FILE else ""
    except UnicodeDecodeError:
        text = ""
    name = file.relative_to(folder).as_posix()
    if not text:
        return f"\n## {name} {{#{_slug(name)}}}\n\n{file.stat().st_size:,} bytes.\n"
    return f"\n## {name} {{#{_slug(name)}}}\n\n````{LANGUAGES.get(file.suffix, 'text')}\n{text.rstrip()}\n````\n"


def _title(page: Path) -> str:
    return page.read_text().partition("\n")[0].lstrip("# ")


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def _write(target: Path, text: str) -> None:
    (SOURCE / target).parent.mkdir(parents=True, exist_ok=True)
    (SOURCE / target).write_text(text)


def _copy_file(file: Path, target: Path) -> None:
    (SOURCE / target).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(file, SOURCE / target)


def navigation(index: str) -> list[dict[str, object]]:
    """The sections of docs/index.md with the pages in their tables."""
    sections: list[dict[str, object]] = [{"Start": "index.md"}]
    for part in index.split("\n## ")[1:]:
        title = part.partition("\n")[0]
        rows = [{name: _place(Path(os.path.normpath(DOCS / path))).as_posix()} for name, path in _ROW.findall(part)]
        if rows:
            sections.append({title: rows})
    return sections


def prepare() -> None:
    """Writes the generator's configuration and pages to build."""
    shutil.rmtree(SOURCE, ignore_errors=True)
    pages = Pages()
    for page in (*sorted(DOCS.glob("*.md")), *sorted((DOCS / "adr").glob("*.md"))):
        pages.copy(page)
    config = {**CONFIG, "nav": navigation((DOCS / "index.md").read_text())}
    (SOURCE.parent / "mkdocs.yml").write_text(yaml.safe_dump(config, sort_keys=False, allow_unicode=True))


def main() -> None:
    prepare()
    zensical = Path(sys.executable).parent / "zensical"
    subprocess.run([zensical, "build", "--clean", "--config-file", "mkdocs.yml"], cwd=SOURCE.parent, check=True)
    print(f"{SITE}/index.html")


if __name__ == "__main__":
    main()
