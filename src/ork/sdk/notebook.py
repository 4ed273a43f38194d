"""The executor `notebook`: runs a Jupyter notebook with the task's inputs as its parameters.

It needs `nbclient` and a kernel (`ipykernel`) in the task's environment, and `nbconvert` for the HTML view. Ork needs none of them.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from dataclasses import dataclass
from typing import Any

from ork.sdk.context import Context
from ork.sdk.errors import TaskError
from ork.sdk.files import File

PARAMETERS = "parameters"
"""The tag of the cell with the defaults of the parameters. Inputs are assigned in a new cell after it, as papermill does."""
RESULT = "output"
"""The variable whose value, if it is set, is the task's `result`."""
_READ_RESULT = f"""import json as _json
print(_json.dumps(globals().get({RESULT!r}), default=str))"""
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


class NotebookExecutor:
    """The output is `{"notebook": ork.File, "html": ork.File, "result": …}`: the executed copy, its view, and the variable `output`."""

    @dataclass
    class TaskConfig:
        notebook: str
        kernel: str | None = None  # default: as the notebook says
        html: bool = True

    def __init__(self, config: Any) -> None:  # noqa: ARG002 (it has none)
        self._files: list[Any] = []  # kept open: they have no name on the disk, so nothing is left behind

    def run(self, context: Context, config: TaskConfig, inputs: dict[str, Any]) -> dict[str, Any]:
        nbformat, client_of = _libraries()
        path = os.path.abspath(config.notebook)
        try:
            notebook = nbformat.read(path, as_version=4)
        except (OSError, ValueError) as error:
            raise TaskError(f"cannot read the notebook {config.notebook}: {error}", retry=False) from None
        _add_parameters(notebook, inputs, nbformat)
        result = client_of(notebook, path, config.kernel).run_all(nbformat)
        name = os.path.splitext(os.path.basename(path))[0]
        context.metrics.set("cells", sum(cell.cell_type == "code" for cell in notebook.cells))
        output = {
            "notebook": self._file(f"{name}.ipynb", nbformat.writes(notebook), "application/x-ipynb+json"),
            "result": result,
        }
        html = _html(notebook) if config.html else None
        return output if html is None else {**output, "html": self._file(f"{name}.html", html, "text/html")}

    def _file(self, name: str, text: str, media_type: str) -> File:
        file = tempfile.TemporaryFile()  # noqa: SIM115 (open until the output is stored)
        file.write(text.encode())
        file.flush()
        self._files.append(file)
        return File(f"/dev/fd/{file.fileno()}", name=name, media_type=media_type)


def _libraries() -> tuple[Any, Any]:
    try:
        import nbformat
        from nbclient import NotebookClient
        from nbclient.exceptions import CellExecutionError
        from traitlets.config import Config
    except ImportError as error:
        raise TaskError(
            f"a notebook needs {error.name}, which is not installed here: add `nbclient` and `ipykernel` to the task's `environment`",
            retry=False,
        ) from None

    class Client(NotebookClient):
        """Prints what cells print while they run, so that it is in the task's log."""

        def run_all(self, form: Any) -> Any:
            """Run all cells. Returns the variable `output`; raises what a cell raised."""
            cells = list(self.nb.cells)
            with self.setup_kernel():
                for index, cell in enumerate(cells):
                    self._run_one(cell, index)
                if self.nb.metadata.get("kernelspec", {}).get("language", "python") != "python":
                    return None
                self.nb.cells.append(form.v4.new_code_cell(_READ_RESULT))
                self._is_quiet = True
                read = self.execute_cell(self.nb.cells[-1], len(cells))
                self.nb.cells.pop()
            return json.loads("".join(each.text for each in read.outputs if each.output_type == "stream") or "null")

        _is_quiet = False

        def _run_one(self, cell: Any, index: int) -> None:
            try:
                self.execute_cell(cell, index)
            except CellExecutionError as error:
                print(f"In cell {index + 1}:\n{_COLOURS.sub('', error.traceback)}", file=sys.stderr, flush=True)
                raise _raised(error.ename, f"{error.evalue} (cell {index + 1})") from None

        def output(self, outs: Any, message: Any, display_id: str, cell_index: int) -> Any:
            """Called by nbclient for each message of a cell."""
            content = message["content"]
            if message["msg_type"] == "stream" and not self._is_quiet:
                target = sys.stderr if content["name"] == "stderr" else sys.stdout
                print(content["text"], end="", file=target, flush=True)
            return super().output(outs, message, display_id, cell_index)

    def client_of(notebook: Any, path: str, kernel: str | None) -> Any:
        kernel = kernel or notebook.metadata.get("kernelspec", {}).get("name") or "python3"
        # Sockets of the file system: nobody else on this machine can connect to the kernel.
        transport = Config({"KernelManager": {"transport": "ipc"}})
        resources = {"metadata": {"path": os.path.dirname(path)}}
        return Client(notebook, timeout=None, kernel_name=kernel, resources=resources, config=transport)

    return nbformat, client_of


def _raised(name: str, message: str) -> Exception:
    """The exception of a cell, which was raised in another process: it has the same name."""
    made = type(name if name.isidentifier() else "CellError", (Exception,), {"__module__": "builtins"})
    found: Exception = made(message)
    return found


def _add_parameters(notebook: Any, inputs: dict[str, Any], form: Any) -> None:
    """Assigns the inputs in a cell after the one that is tagged `parameters`, or before all others."""
    if not inputs:
        return
    lines = [f"{name} = {_literal(name, value)}" for name, value in inputs.items()]
    cell = form.v4.new_code_cell(
        "\n".join(["# Parameters of this run", *lines]), metadata={"tags": ["injected-parameters"]}
    )
    tags = [each.metadata.get("tags", []) for each in notebook.cells]
    at = next((index + 1 for index, each in enumerate(tags) if PARAMETERS in each), 0)
    notebook.cells.insert(at, cell)


def _literal(name: str, value: Any) -> str:
    """Python source of a value; of a file its path. The notebook runs in a process of its own, so nothing else can be given."""
    if isinstance(value, File):
        return repr(str(value.path))
    try:
        return repr(json.loads(json.dumps(value)))
    except (TypeError, ValueError):
        message = f"input `{name}` is a {type(value).__name__}: give it as a file, {{ref: …, as: file}}, and read it in the notebook"
        raise TaskError(message, retry=False) from None


def _html(notebook: Any) -> str | None:
    try:
        from nbconvert import HTMLExporter
    except ImportError:
        print("nbconvert is not installed here: there is no HTML view", file=sys.stderr)
        return None
    text: str = HTMLExporter().from_notebook_node(notebook)[0]
    return text
