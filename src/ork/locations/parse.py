"""`ork-parse`: prints all workflows of a folder as one JSON document.

Ork runs it inside images; people can run it anywhere. User code is only loaded by child processes with limits, and
cannot write into the document. See docs/locations.md.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from ork import __version__
from ork.compile.content import to_document
from ork.compile.project import project_folder_of
from ork.definition.problems import Problem, quoted, render_concise
from ork.definition.project import Project
from ork.definition.project_file import load_project
from ork.errors import OrkError
from ork.locations.files import Definition, FileContext, read_definitions
from ork.locations.find import TooManyFilesError, definition_files
from ork.model.record import replaced
from ork.objects.json_text import dumps

FORMAT = 1
OK, HAS_PROBLEMS, INVALID_USAGE = 0, 1, 2
_NO_WORKFLOW = "ORK511"
_PROJECT_FILE = "ork.yaml"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the document to stdout, and the problems for people to stderr."""
    options = _options(sys.argv[1:] if arguments is None else arguments)
    document, problems = parse_folder(options.folder, project_file=options.project, cache_dir=options.cache)
    sys.stdout.write(dumps(document) + "\n")
    sys.stdout.flush()
    for problem in problems:
        print(render_concise(problem), file=sys.stderr)
    return HAS_PROBLEMS if problems else OK


def parse_folder(
    folder: str, *, project_file: str | None = None, cache_dir: str | None = None
) -> tuple[dict[str, Any], list[Problem]]:
    """The document, and its problems. Paths are relative to the folder."""
    folder = os.path.abspath(folder)
    project, problems = _project(os.path.abspath(project_file or os.path.join(folder, _PROJECT_FILE)))
    if project_file is None and not (project.workers or project.broken_workers):
        # In an image, the worker configs of the installation are unknown.
        project = replaced(project, workers=None)
    if project_file is None and not project.alerts:
        project = replaced(project, alerts=None)  # and so are its alerts
    project = _project_of(project, folder)
    # Environments are built beside the cache.
    context = FileContext(project, cache_dir, None if cache_dir is None else os.path.dirname(cache_dir))
    reads, more = _reads(folder, context) if not problems else ([], [])
    problems += [
        *more,
        *(_relative_problem(problem, read.root) for read in reads for problem in read.problems),
        *_duplicates(reads),
    ]
    problems = [replaced(problem, file=os.path.relpath(problem.file, folder)) for problem in problems]
    workflows = [_workflow_json(read, folder) for read in reads if read.workflow is not None]
    document = {
        "format": FORMAT,
        "ork": __version__,
        "folder": folder,
        "workflows": workflows,
        "problems": [_problem_json(problem) for problem in problems],
    }
    return document, problems


def _reads(folder: str, context: FileContext) -> tuple[list[Definition], list[Problem]]:
    if not os.path.isdir(folder):
        return [], [Problem("ORK704", f"there is no folder {folder}", folder)]
    try:
        files = definition_files(folder)
    except TooManyFilesError as error:
        hint = "name the folder of the workflows; in an image, WORKDIR says it"
        return [], [Problem("ORK704", str(error), folder, hint=hint)]
    reads: list[Definition] = []
    for file in files:
        reads += _read(os.path.join(folder, file), context)
    return reads, []


def _read(file: str, context: FileContext) -> Iterator[Definition]:
    """Yield the workflows that the file itself defines; those it only uses have their own file. An invalid file does
    not hide others."""
    try:
        reads = read_definitions(file, context)
    except OrkError as error:
        reads = [
            Definition(file, os.path.dirname(file), None, (Problem(error.code, error.message, file, hint=error.hint),))
        ]
    for read in reads:
        has_no_workflow = any(problem.code == _NO_WORKFLOW for problem in read.problems)
        if read.is_own and not has_no_workflow:
            yield read


def _duplicates(reads: Sequence[Definition]) -> Iterator[Problem]:
    """Workflow names must be unique."""
    counts = Counter(read.workflow.name for read in reads if read.workflow is not None)
    for read in reads:
        name = read.workflow.name if read.workflow is not None else ""
        if counts[name] > 1:
            yield Problem("ORK705", f"workflow {quoted(name)} is defined {counts[name]} times", read.file)


def _project(file: str) -> tuple[Project, list[Problem]]:
    """The settings of `ork.yaml`, and of `workers.yaml` next to it; defaults without them."""
    from ork.definition.workers_file import WORKERS_FILE, read_workers

    folder = os.path.dirname(file)
    workers_file = os.path.join(folder, WORKERS_FILE)
    try:
        project, problems = load_project(_content(file), file)
        workers = read_workers(_content(workers_file), workers_file)
    except OSError as error:
        return Project(), [Problem("ORK501", f"cannot read {error.filename}: {error.strerror}", file)]
    script_dir = project.script_dir and os.path.join(folder, project.script_dir)
    # A mistake in a worker config is reported for the tasks that use it, and does not affect other workflows.
    return replaced(
        project,
        folder=folder,
        script_dir=script_dir,
        workers=workers.configs,
        broken_workers=workers.broken,
    ), list(problems)


def _project_of(project: Project, folder: str) -> Project:
    """A folder is its own project, unless it is inside the project whose ork.yaml applies."""
    return (
        project if project_folder_of(project, folder) is not None else replaced(project, folder=folder, pythonpath=())
    )


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as source:
            return source.read()
    except FileNotFoundError:
        return b""


def _relative_problem(problem: Problem, root: str) -> Problem:
    """Make the path of another file in a problem relative to the workflow's folder."""
    return replaced(problem, file=os.path.join(root, problem.file))


def _workflow_json(read: Definition, folder: str) -> dict[str, Any]:
    assert read.workflow is not None
    return {
        "name": read.workflow.name,
        "file": os.path.relpath(read.file, folder),
        "root": os.path.relpath(read.root, folder),
        "definition": to_document(read.workflow),
    }


def _problem_json(problem: Problem) -> dict[str, Any]:
    """All fields, so that a reader of the document can show the problem without the file."""
    return {field: getattr(problem, field) for field in Problem._fields}


def _options(arguments: Sequence[str]) -> Any:
    from argparse import SUPPRESS, ArgumentParser

    parser = ArgumentParser(
        prog="ork-parse",
        description="Finds the workflows of a folder and prints them as one JSON document.",
        epilog="Exit code 0: all are fine; 1: the document holds problems. Example:  docker run --rm IMAGE ork-parse",
    )
    parser.add_argument("folder", nargs="?", default=".", metavar="DIR", help="default: the current folder")
    parser.add_argument("--project", metavar="FILE", help="the project's ork.yaml, if it is not in DIR")
    parser.add_argument("--cache", metavar="DIR", help=SUPPRESS)
    parser.add_argument("--version", action="version", version=f"ork-parse {__version__}")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
