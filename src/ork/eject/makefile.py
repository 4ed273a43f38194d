"""The Makefile and the shell script."""

from __future__ import annotations

import shlex

from ork.eject.plan import in_order
from ork.model.workflow import Command, CompiledWorkflow, Const, Container, PythonCall, SubWorkflow, TaskSpec


def makefile_text(workflow: CompiledWorkflow) -> str:
    """`make -j4` runs the tasks, as many at once as their dependencies and `-j` allow."""
    names = [task.name for task in in_order(workflow)]
    lines = [
        f"# Workflow {workflow.name}, ejected from Ork.",
        "#",
        "#   make -j4                      runs it, four tasks at once; a second `make` runs what did not succeed",
        "#   make -j4 PARAMS='day=2026-01-01 batch=5'   with params, from the beginning",
        "#   make clean                    forgets the run",
        "",
        "PYTHON ?= python3",
        "PARAMS ?=",
        "OUT ?= out",
        "export OUT",
        ".PHONY: all start clean",
        "",
        f"all: {' '.join(f'$(OUT)/{name}.state' for name in names)}",
        "\t@$(PYTHON) task.py --finish",
        "",
        "start:",
        "\t@$(PYTHON) task.py --start $(PARAMS)",
        "",
        "clean:",
        "\trm -rf $(OUT)",
    ]
    for task in in_order(workflow):
        before = " ".join(f"$(OUT)/{name}.state" for name in task.depends_on)
        lines += ["", f"# {described(task)}", f"$(OUT)/{task.name}.state: {before} | start".replace(":  |", ": |")]
        lines.append(f"\t@$(PYTHON) task.py {task.name}")
    return "\n".join([*lines, ""])


def described(task: TaskSpec) -> str:
    """What the task does, in one line."""
    match task.action:
        case PythonCall():
            text = f"function {task.action.function} of {task.action.file or task.action.module}"
        case Command() | Container():
            words = [word.value if isinstance(word, Const) else "…" for word in task.action.argv]
            text = " ".join(shlex.quote(str(word)) for word in words)
            text = f"{task.image}: {text}" if task.image else text
        case SubWorkflow():
            text = f"workflow {task.action.name}"
        case _:
            text = task.executor
    text = " ".join(text.split())
    return (text if len(text) <= 100 else f"{text[:99]}…") + (f"; {task.retries} retries" if task.retries else "")


def script_text(workflow: CompiledWorkflow) -> str:
    """The same without make: one task after the other."""
    calls = [f'"$PYTHON" task.py {task.name}   # {described(task)}' for task in in_order(workflow)]
    lines = [
        "#!/bin/sh",
        f"# Workflow {workflow.name}, ejected from Ork: ./run.sh [name=value …]",
        "set -eu",
        'cd "$(dirname "$0")"',
        'PYTHON="${PYTHON:-python3}"',
        'OUT="${OUT:-out}"',
        "export OUT",
        'rm -rf "$OUT"',
        "",
        '"$PYTHON" task.py --start "$@"',
        *calls,
        'exec "$PYTHON" task.py --finish',
        "",
    ]
    return "\n".join(lines)
