"""Finds and parses the source files, and resolves imports among them."""

from __future__ import annotations

import ast
import os
import warnings

from ork.importers.project import ImportedProject, Level, SourcePlace
from ork.importers.python.values import Module, NameScope
from ork.importers.sources import read_text

_FURTHER_ROOTS = ("", "plugins", "include", "src", "lib", "dags")
_PARENTS = 3


class Sources:
    """The source files below a folder, and those beside it that they import."""

    def __init__(self, root: str, project: ImportedProject) -> None:
        self.root = os.path.abspath(root if os.path.isdir(root) else os.path.dirname(os.path.abspath(root)))
        self.project = project
        self._shown = root if os.path.isdir(root) else os.path.dirname(root)
        self._by_path: dict[str, Module | None] = {}
        self._by_name: dict[str, Module | None] = {}

    def load(self, path: str) -> Module | None:
        """The parsed file; None, with a note, if it is not Python."""
        path = os.path.abspath(path)
        if path not in self._by_path:
            self._by_path[path] = self._parse(path, self._name(path))
        return self._by_path[path]

    def find(self, dotted: str, importer: Module | None = None, level: int = 0) -> Module | None:
        """The source of a module that is imported by this name; None if it is none of the sources."""
        if level and importer is not None:
            package = importer.name.split(".")[:-level]
            dotted = ".".join([*package, dotted] if dotted else package)
        if not dotted:
            return None
        if dotted not in self._by_name:
            self._by_name[dotted] = None
            path = self._path(dotted)
            if path is not None:
                module = self._by_path.get(path) or self._parse(path, dotted)
                self._by_path[path] = module
                self._by_name[dotted] = module
        return self._by_name[dotted]

    def place(self, module: Module, node: ast.AST) -> SourcePlace:
        return SourcePlace(module.path, getattr(node, "lineno", 1))

    def _name(self, path: str) -> str:
        relative = os.path.relpath(path, self.root)
        return os.path.splitext(relative)[0].replace(os.sep, ".").removesuffix(".__init__")

    def _path(self, dotted: str) -> str | None:
        relative = dotted.replace(".", os.sep)
        for root in self._roots():
            for candidate in (f"{relative}.py", os.path.join(relative, "__init__.py")):
                path = os.path.join(root, candidate)
                if os.path.isfile(path):
                    return path
        return None

    def _roots(self) -> list[str]:
        folder, found = self.root, []
        for _ in range(_PARENTS):
            found += [os.path.normpath(os.path.join(folder, name)) for name in _FURTHER_ROOTS]
            folder = os.path.dirname(folder)
        return list(dict.fromkeys(each for each in found if os.path.isdir(each)))

    def _parse(self, path: str, name: str) -> Module | None:
        shown = os.path.normpath(os.path.join(self._shown, os.path.relpath(path, self.root)))
        text = read_text(path)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about strange escapes in the source
                tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            line = getattr(error, "lineno", None) or 1
            self.project.note(
                Level.PERSON, f"not valid Python: {getattr(error, 'msg', None) or error}", SourcePlace(shown, line)
            )
            return None
        module = Module(name, shown, text, tree, NameScope(None))
        module.scope.module = module
        module.scope.names["__name__"] = name
        return module
