"""Which files are code, by name: those that tasks load, not what tasks read and write.

Data, outputs, hidden files, caches and installed packages are no code. A project leaves out more with simple patterns in
`.orkignore`; those in `.gitignore` hold as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

IGNORE_FILES = (".gitignore", ".orkignore")
MAX_FILE = 4 << 20  # bytes; a larger file is data
ORK_FILES = frozenset({"ork.yaml", "workers.yaml", "locations.yaml"})
SKIPPED_FOLDERS = frozenset(
    {"__pycache__", "node_modules", "site-packages", "dist-packages", "venv", "dbt_packages", "dbt_modules", "target"}
)
# A folder with one of these is a virtual environment or a cache, whatever its name.
MARKS = frozenset({"pyvenv.cfg", "CACHEDIR.TAG"})
_LANGUAGES = (
    ".py", ".pyi", ".pyx", ".ipynb", ".sql", ".sh", ".bash", ".zsh", ".ps1", ".r", ".R", ".jl", ".rs", ".go", ".js", ".mjs",
    ".cjs", ".ts", ".java", ".scala", ".kt", ".kts", ".c", ".cc", ".cpp", ".h", ".hpp", ".cs", ".rb", ".pl", ".lua", ".php",
    ".awk",
)  # fmt: skip
_SUFFIXES = (
    *_LANGUAGES, ".jinja", ".jinja2", ".j2", ".tmpl", ".mako", ".toml", ".cfg", ".ini", ".yaml", ".yml", ".proto", ".graphql",
)  # fmt: skip
_NAMES = frozenset(
    {"Makefile", "Dockerfile", "Pipfile", "Pipfile.lock", "uv.lock", "poetry.lock", "pdm.lock", "Cargo.lock", "package.json",
     "package-lock.json", "go.mod", "go.sum"}
)  # fmt: skip
_PACKAGE_LISTS = ("requirements", "constraints")


def is_code_name(name: str) -> bool:
    """True for a file name, without its folder, that is code. A name without a suffix may be a script: see `is_script`."""
    if name in _NAMES:
        return True
    if name.endswith(".txt"):
        return name.startswith(_PACKAGE_LISTS)
    return name.endswith(_SUFFIXES) and name not in ORK_FILES


def may_be_script(name: str) -> bool:
    return "." not in name and name not in _NAMES


def is_code_text(name: str, text: bytes) -> bool:
    """False for the definition of a workflow in YAML, which is compared on its own, and for a program that is no script."""
    if name.endswith((".yaml", ".yml")):
        return not (_has_key(text, b"name") and _has_key(text, b"tasks"))
    return text.startswith(b"#!") if may_be_script(name) else True


def _has_key(text: bytes, key: bytes) -> bool:
    """The text has this key at its top level."""
    return text.startswith(key + b":") or b"\n" + key + b":" in text


class Ignored:
    """The patterns of ignore files: names, paths, `*`, `?` and `[…]`, a `/` at the end for folders. `!` takes files back in,
    wherever it stands. Most patterns need no matching: they are names or suffixes."""

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self._names: set[str] = set()
        self._suffixes: tuple[str, ...] = ()
        self._patterns: list[str] = []
        self._taken_back: list[str] = []
        for text in texts:
            for line in text.splitlines():
                self._add(line.strip())

    def _add(self, line: str) -> None:
        if not line or line.startswith("#"):
            return
        if line.startswith("!"):
            self._taken_back.append(_pattern(line[1:]))
            return
        plain = line.rstrip("/").removeprefix("**/")
        if "/" not in plain and not _is_wild(plain):
            self._names.add(plain)
        elif plain.startswith("*.") and not _is_wild(plain[1:]) and "/" not in plain:
            self._suffixes += (plain[1:],)
        else:
            self._patterns.append(_pattern(line))

    def has(self, name: str, path: str) -> bool:
        """True for a file or folder with this name, and this path from the folder of the ignore files."""
        if not (name in self._names or name.endswith(self._suffixes) or _matches(self._patterns, name, path)):
            return False
        return not _matches(self._taken_back, name, path)


def _is_wild(text: str) -> bool:
    return any(sign in text for sign in "*?[")


def _pattern(line: str) -> str:
    """A path from the folder if it has a slash inside or in front, else a name at any depth."""
    line = line.rstrip("/").removeprefix("**/")
    return "/" + line.lstrip("/") if "/" in line else line


def _matches(patterns: list[str], name: str, path: str) -> bool:
    return any(fnmatchcase("/" + path if "/" in pattern else name, pattern) for pattern in patterns)
