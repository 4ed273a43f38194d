"""Writes modules that have only the functions that tasks need, and what these functions use.

Functions are copied with their comments. Decorators and imports of the framework are removed; names of it that have a
replacement are imported from the module of replacements, and the others are reported.
"""

from __future__ import annotations

import ast
import builtins
import sys
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from ork.importers.python.modules import Sources
from ork.importers.python.values import Module, NameScope, SourceFunction, is_known

_NONE = object()
_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__"}
_PACKAGES = {
    "yaml": "PyYAML", "bs4": "beautifulsoup4", "sklearn": "scikit-learn", "cv2": "opencv-python", "PIL": "Pillow",
    "dotenv": "python-dotenv", "psycopg2": "psycopg2-binary", "MySQLdb": "mysqlclient", "dateutil": "python-dateutil",
    "Crypto": "pycryptodome", "OpenSSL": "pyOpenSSL", "jwt": "PyJWT", "git": "GitPython", "telegram": "python-telegram-bot",
    "google": "google-cloud", "slack": "slack-sdk", "attr": "attrs", "psycopg": "psycopg[binary]", "MySQL": "mysqlclient",
}  # fmt: skip


class Framework(NamedTuple):
    """Whose imports are removed, and which of its names have a replacement."""

    roots: tuple[str, ...]
    replacements: Mapping[str, str]  # the name, and the module that has the replacement


class Missing(NamedTuple):
    """Something that a copied function needs and does not get."""

    reason: str
    line: int


class CopiedModule:
    """A module of copies. `need` adds a function and everything it uses; `text` is the source."""

    def __init__(self, files: CopiedFiles, module: Module, path: str) -> None:
        self._files = files
        self._module = module
        self.path = path
        self._imports: dict[str, None] = {}
        self._statements: dict[int, tuple[int, str]] = {}  # by identity of the node: line and text
        self._seen: set[int] = set()
        self._missing: dict[int, list[Missing]] = {}
        self._constants: dict[str, Any] = {}
        self.wrappers: list[str] = []
        self.uses_replacements = False

    @property
    def is_empty(self) -> bool:
        return not self._statements and not self.wrappers

    def add_import(self, line: str) -> None:
        self._imports[line] = None

    def need_function(self, function: SourceFunction) -> list[Missing]:
        """Copies the function; returns what it would miss."""
        node = function.node
        assert not isinstance(node, ast.Lambda)
        return self._add(node, function.scope)

    def need_names(self, node: ast.AST, scope: NameScope) -> list[Missing]:
        """Copies what an expression uses."""
        return self._need_free(node, scope)

    def _add(self, node: ast.stmt, scope: NameScope) -> list[Missing]:
        self._files.note_use(node)
        if id(node) in self._seen:
            return self._missing.get(id(node), [])
        self._seen.add(id(node))
        missing: list[Missing] = []
        self._missing[id(node)] = missing  # known before its own names are, for functions that call each other
        copied, inner = self._without_framework(node)
        missing += inner
        users, self._files.user = self._files.user, node
        missing += self._need_free(copied, scope)
        self._files.user = users
        self._statements[id(node)] = (node.lineno, self._source(node, copied))
        return missing

    def _need_free(self, node: ast.AST, scope: NameScope) -> list[Missing]:
        missing: list[Missing] = []
        for name, line in free_names(node):
            missing += self._need_name(name, scope, line)
        return missing

    def _need_name(self, name: str, scope: NameScope, line: int) -> list[Missing]:
        found = _definition(name, scope, self._module)
        if found is None:
            return [] if name in _BUILTINS else self._need_constant(name, scope, line)
        statement, owner = found
        value = owner.names.get(name)
        if value is not None and self._files.is_forbidden(value):
            return [Missing(f"it uses `{name}`, which is part of the definition of the workflow", line)]
        if isinstance(statement, ast.Import | ast.ImportFrom):
            return self._need_import(statement, name, line)
        return self._add(statement, owner)

    def _need_constant(self, name: str, scope: NameScope, line: int) -> list[Missing]:
        """A parameter of an enclosing function, or the variable of a loop: its value, if there is only one."""
        value = scope.get(name, _NONE)
        if value is _NONE:
            return self._need_star(name)
        if not is_known(value) or self._constants.get(name, value) != value:
            return [Missing(f"it uses `{name}`, whose value is known only when the file is run", line)]
        self._constants[name] = value
        return []

    def _need_star(self, name: str) -> list[Missing]:
        for statement in ast.walk(self._module.tree):
            if isinstance(statement, ast.ImportFrom) and any(alias.name == "*" for alias in statement.names):
                source = self._files.sources.find(statement.module or "", self._module, statement.level)
                if source is not None and name in source.scope.names:
                    missing = self._files.need(source, name)
                    self._imports[f"from {source.name} import {name}"] = None
                    return missing
                if source is None and not self._is_framework(statement.module):
                    self._imports[f"from {statement.module} import *"] = None
                    self._files.require(statement.module or "")
        return []

    def _is_framework(self, dotted: str | None) -> bool:
        return (dotted or "").partition(".")[0] in self._files.framework.roots

    def _need_import(self, node: ast.Import | ast.ImportFrom, name: str, line: int) -> list[Missing]:
        if isinstance(node, ast.Import):
            alias = next(each for each in node.names if (each.asname or each.name.partition(".")[0]) == name)
            return self._plain_import(alias, line)
        alias = next(each for each in node.names if (each.asname or each.name) == name)
        renamed = f" as {alias.asname}" if alias.asname and alias.asname != alias.name else ""
        if self._is_framework(node.module) and not node.level:
            return self._replacement(alias.name, renamed, f"{node.module}.{alias.name}", line)
        source = self._files.sources.find(node.module or "", self._module, node.level)
        below = self._files.sources.find(f"{node.module or ''}.{alias.name}".strip("."), self._module, node.level)
        if source is not None and alias.name in source.scope.names:
            self._imports[f"from {source.name} import {alias.name}{renamed}"] = None
            return self._files.need(source, alias.name)
        if below is not None:
            package, _, last = below.name.rpartition(".")
            self._imports[f"from {package} import {last}{renamed}" if package else f"import {last}{renamed}"] = None
            return self._files.need_all(below)
        if node.level:
            return [Missing(f"`{name}` is imported from a module that was not found", line)]
        self._imports[f"from {node.module} import {alias.name}{renamed}"] = None
        self._files.require(f"{node.module}.{alias.name}" if node.module == "google.cloud" else node.module or "")
        return []

    def _plain_import(self, alias: ast.alias, line: int) -> list[Missing]:
        if self._is_framework(alias.name):
            return [Missing(f"it uses `{alias.name}`", line)]
        renamed = f" as {alias.asname}" if alias.asname else ""
        self._imports[f"import {alias.name}{renamed}"] = None
        source = self._files.sources.find(alias.name)
        if source is not None:
            return self._files.need_all(source)
        self._files.require(alias.name)
        return []

    def _replacement(self, name: str, renamed: str, dotted: str, line: int) -> list[Missing]:
        framework = self._files.framework
        if name not in framework.replacements:
            return [Missing(f"it uses `{dotted}`", line)]
        self._imports[f"from {framework.replacements[name]} import {name}{renamed}"] = None
        self.uses_replacements = True
        return []

    def _without_framework(self, node: ast.stmt) -> tuple[ast.stmt, list[Missing]]:
        """The statement without the framework's decorators, and with its inner imports replaced."""
        missing: list[Missing] = []
        outer = self

        class Rewrite(ast.NodeTransformer):
            def visit_ImportFrom(self, found: ast.ImportFrom) -> ast.AST | list[ast.stmt] | None:
                if not outer._is_framework(found.module) or found.level:
                    outer._inner_import(found, missing)
                    return found
                replaced: list[ast.stmt] = []
                for alias in found.names:
                    before = dict(outer._imports)
                    missing.extend(outer._replacement(alias.name, "", f"{found.module}.{alias.name}", found.lineno))
                    outer._imports = before
                    module = outer._files.framework.replacements.get(alias.name, "_")
                    replaced.append(ast.ImportFrom(module, [alias], 0))
                return replaced

            def visit_Import(self, found: ast.Import) -> ast.AST:
                for alias in found.names:
                    if outer._is_framework(alias.name):
                        missing.append(Missing(f"it uses `{alias.name}`", found.lineno))
                    elif outer._files.sources.find(alias.name) is None:
                        outer._files.require(alias.name)
                return found

        copied = ast.parse(ast.unparse(node)).body[0]
        ast.copy_location(copied, node)
        if isinstance(copied, ast.FunctionDef | ast.AsyncFunctionDef):
            original = node.decorator_list if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else []
            kept = [each for each in original if not self._files.is_framework_decorator(each)]
            copied.decorator_list = kept
        for each in ast.walk(copied):
            if hasattr(each, "lineno"):
                each.lineno = node.lineno
        return Rewrite().visit(copied), missing

    def _inner_import(self, node: ast.ImportFrom, missing: list[Missing]) -> None:
        source = self._files.sources.find(node.module or "", self._module, node.level)
        if source is None:
            self._files.require(node.module or "")
            return
        for alias in node.names:
            missing.extend(self._files.need(source, alias.name))
        node.module, node.level = source.name, 0

    def _source(self, node: ast.stmt, copied: ast.stmt) -> str:
        """The source text of the statement, with comments if nothing in it was replaced."""
        lines = self._module.text.splitlines()[node.lineno - 1 : node.end_lineno]
        kept = ""
        if isinstance(copied, ast.FunctionDef | ast.AsyncFunctionDef) and copied.decorator_list:
            kept = "".join(f"@{ast.unparse(each)}\n" for each in copied.decorator_list)
        text = kept + textwrap.dedent("\n".join(lines))
        try:
            if ast.dump(ast.parse(text)) == ast.dump(ast.Module([copied], [])):
                return text
        except SyntaxError:
            pass
        return ast.unparse(ast.fix_missing_locations(copied))

    def text(self, head: str) -> str:
        """The source of the module."""
        future = "from __future__ import annotations\n" if "from __future__ import annotations" in self._imports else ""
        imports = merged_imports(self._imports)
        statements = [text for _, text in sorted(self._statements.values(), key=lambda each: each[0])]
        constants = "\n".join(f"{name} = {value!r}" for name, value in self._constants.items())
        blocks = [f'"""{head}"""', future + "\n".join(imports), constants, *statements, *self.wrappers]
        return "\n\n\n".join(block.strip("\n") for block in blocks if block.strip()) + "\n"


class CopiedFiles:
    """All modules of copies: one for each workflow, and those of the sources that they import."""

    def __init__(
        self,
        sources: Sources,
        framework: Framework,
        is_forbidden: Callable[[Any], bool],
        is_framework_decorator: Callable[[ast.expr], bool],
    ) -> None:
        self.sources = sources
        self.framework = framework
        self.is_forbidden = is_forbidden
        self.is_framework_decorator = is_framework_decorator
        self._modules: dict[str, CopiedModule] = {}
        self._owned: list[CopiedModule] = []
        self.user: ast.stmt | None = None  # the statement whose names are being copied
        self._uses: dict[int, list[ast.stmt]] = {}

    def new(self, module: Module, path: str) -> CopiedModule:
        """An empty module of copies for a workflow."""
        copied = CopiedModule(self, module, path)
        self._owned.append(copied)
        return copied

    def need(self, module: Module, name: str) -> list[Missing]:
        """Copies one definition of a source module to a file of the same name."""
        copied = self._module(module)
        return copied._need_name(name, module.scope, 1)

    def need_all(self, module: Module) -> list[Missing]:
        """Copies all functions, classes and constants of a source module that can be copied."""
        copied = self._module(module)
        for statement in module.tree.body:
            for name in bound_names(statement):
                copied._need_name(name, module.scope, statement.lineno)
        return []

    def _module(self, module: Module) -> CopiedModule:
        if module.name not in self._modules:
            self._modules[module.name] = CopiedModule(self, module, module.name.replace(".", "/") + ".py")
        return self._modules[module.name]

    def note_use(self, node: ast.stmt) -> None:
        if self.user is not None:
            self._uses.setdefault(id(self.user), []).append(node)

    def reachable(self, node: ast.stmt) -> list[ast.stmt]:
        """The statement and all statements that it uses, directly or through others."""
        found, waiting = {id(node): node}, [node]
        while waiting:
            for each in self._uses.get(id(waiting.pop()), []):
                if id(each) not in found:
                    found[id(each)] = each
                    waiting.append(each)
        return list(found.values())

    def require(self, dotted: str) -> None:
        """Records that an installed package is needed."""
        top = dotted.partition(".")[0]
        if (
            top
            and top not in sys.stdlib_module_names
            and top not in self.framework.roots
            and top not in self.framework.replacements.values()
        ):
            name = "-".join(dotted.split(".")[:3]) if dotted.startswith("google.cloud.") else _PACKAGES.get(top, top)
            self.sources.project.requirements.add(name)

    def texts(self) -> dict[str, str]:
        """The files of the copied modules of the sources."""
        return {
            copied.path: copied.text(f"Copied from {name}.")
            for name, copied in self._modules.items()
            if not copied.is_empty or copied._imports
        }

    @property
    def uses_replacements(self) -> bool:
        return any(each.uses_replacements for each in (*self._owned, *self._modules.values()))


def merged_imports(lines: Collection[str]) -> list[str]:
    """The import lines, sorted, with one line for each module."""
    plain = {line for line in lines if line.startswith("import ")}
    names: dict[str, set[str]] = {}
    for line in lines:
        module, _, imported = line.removeprefix("from ").partition(" import ")
        if line not in plain and module != "__future__":
            names.setdefault(module, set()).update(imported.split(", "))
    found = [f"from {module} import {', '.join(sorted(names[module]))}" for module in sorted(names)]
    return [*sorted(plain), *found]


def free_names(node: ast.AST) -> Iterator[tuple[str, int]]:
    """The names that the code reads and does not bind itself, each once, with a line."""
    bound = set(_bound_inside(node))
    seen: set[str] = set()
    for each in ast.walk(node):
        if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Load) and each.id not in seen:
            if each.id not in bound:
                seen.add(each.id)
                yield each.id, getattr(each, "lineno", 1)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str) and each.value.isidentifier():
            continue


def _bound_inside(node: ast.AST) -> Iterator[str]:
    top = node
    for each in ast.walk(node):
        if isinstance(each, ast.arg):
            yield each.arg
        elif isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store) and each is not top:
            if not isinstance(top, ast.Assign | ast.AnnAssign | ast.AugAssign):
                yield each.id
        elif isinstance(each, ast.ExceptHandler) and each.name:
            yield each.name
        elif isinstance(each, ast.Import | ast.ImportFrom):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in each.names)
        elif isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and each is not top:
            yield each.name


def bound_names(statement: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    match statement:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return [statement.name]
        case ast.Assign():
            return [each.id for target in statement.targets for each in ast.walk(target) if isinstance(each, ast.Name)]
        case ast.AnnAssign() if isinstance(statement.target, ast.Name):
            return [statement.target.id]
        case ast.Import():
            return [alias.asname or alias.name.partition(".")[0] for alias in statement.names]
        case ast.ImportFrom():
            return [alias.asname or alias.name for alias in statement.names]
    return []


def _definition(name: str, scope: NameScope, module: Module) -> tuple[ast.stmt, NameScope] | None:
    """The last statement that binds the name in the scope or one around it."""
    current: NameScope | None = scope
    while current is not None:
        body = _body_of(current, module)
        found = [each for each in _flat(body) if name in bound_names(each)]
        if found:
            return found[-1], current
        current = current.parent
    return None


def _body_of(scope: NameScope, module: Module) -> list[ast.stmt]:
    if scope.parent is None:
        return module.tree.body if scope.module is None or scope.module is module else scope.module.tree.body
    return scope.body


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements, including those inside `with`, `if`, `try` and `for`."""
    for each in body:
        yield each
        match each:
            case ast.With() | ast.AsyncWith() | ast.For() | ast.AsyncFor() | ast.While():
                yield from _flat(each.body)
            case ast.If():
                yield from _flat(each.orelse)
                yield from _flat(each.body)
            case ast.Try():
                for handler in each.handlers:
                    yield from _flat(handler.body)
                yield from _flat(each.body)
