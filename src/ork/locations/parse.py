"""`ork-parse`: every workflow of a folder, told as one JSON document on stdout.

Runs inside images, where Ork asks it what there is, and anywhere else for whoever wants to see the same. User code is
only loaded by children, within limits; what it prints cannot get into the document. See docs/locations.md.
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
from ork.locations.files import Around, Read, read_definitions
from ork.locations.find import TooManyFilesError, definition_files
from ork.model.record import replaced
from ork.objects.json_text import dumps

FORMAT = 1
FINE, HAS_PROBLEMS, WRONG_USE = 0, 1, 2
_NO_WORKFLOW = "ORK511"
_PROJECT_FILE = "ork.yaml"


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the document, and what is wrong once more for a person on stderr."""
    options = _options(sys.argv[1:] if arguments is None else arguments)
    document, problems = parse_folder(options.folder, project_file=options.project, cache_dir=options.cache)
    sys.stdout.write(dumps(document) + "\n")
    sys.stdout.flush()
    for problem in problems:
        print(render_concise(problem), file=sys.stderr)
    return HAS_PROBLEMS if problems else FINE


def parse_folder(
    folder: str, *, project_file: str | None = None, cache_dir: str | None = None
) -> tuple[dict[str, Any], list[Problem]]:
    """The document, and the problems in it as they are. Paths in it are seen from the folder."""
    folder = os.path.abspath(folder)
    project, problems = _project(os.path.abspath(project_file or os.path.join(folder, _PROJECT_FILE)))
    if project_file is None and not (project.workers or project.broken_workers):
        # In an image nobody knows which worker configs there are where it will run.
        project = replaced(project, workers=None)
    if project_file is None and not project.alerts:
        project = replaced(project, alerts=None)  # nor which alerts
    project = _placed_project(project, folder)
    reads, more = _reads(folder, Around(project, cache_dir)) if not problems else ([], [])
    problems += [*more, *(_placed(problem, read.root) for read in reads for problem in read.problems), *_doubled(reads)]
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


def _reads(folder: str, around: Around) -> tuple[list[Read], list[Problem]]:
    if not os.path.isdir(folder):
        return [], [Problem("ORK704", f"there is no folder {folder}", folder)]
    try:
        files = definition_files(folder)
    except TooManyFilesError as error:
        hint = "name the folder of the workflows; in an image, WORKDIR says it"
        return [], [Problem("ORK704", str(error), folder, hint=hint)]
    reads: list[Read] = []
    for file in files:
        reads += _read(os.path.join(folder, file), around)
    return reads, []


def _read(file: str, around: Around) -> Iterator[Read]:
    """What the file itself defines: what it only uses has a file of its own. One bad file does not hide the others."""
    try:
        reads = read_definitions(file, around)
    except OrkError as error:
        reads = [Read(file, os.path.dirname(file), None, (Problem(error.code, error.message, file, hint=error.hint),))]
    for read in reads:
        makes_nothing = any(problem.code == _NO_WORKFLOW for problem in read.problems)
        if read.is_own and not makes_nothing:
            yield read


def _doubled(reads: Sequence[Read]) -> Iterator[Problem]:
    """A name stands for one workflow: which of two is meant, nobody can tell."""
    counts = Counter(read.workflow.name for read in reads if read.workflow is not None)
    for read in reads:
        name = read.workflow.name if read.workflow is not None else ""
        if counts[name] > 1:
            yield Problem("ORK705", f"workflow {quoted(name)} is defined {counts[name]} times", read.file)


def _project(file: str) -> tuple[Project, list[Problem]]:
    """What `ork.yaml`, and `workers.yaml` beside it, say; nothing where they are not there."""
    from ork.definition.workers_file import WORKERS_FILE, read_workers

    folder = os.path.dirname(file)
    workers_file = os.path.join(folder, WORKERS_FILE)
    try:
        project, problems = load_project(_content(file), file)
        workers = read_workers(_content(workers_file), workers_file)
    except OSError as error:
        return Project(), [Problem("ORK501", f"cannot read {error.filename}: {error.strerror}", file)]
    script_dir = project.script_dir and os.path.join(folder, project.script_dir)
    # A mistake in a worker config is reported by the tasks that name it, and stops no other workflow.
    return replaced(
        project,
        folder=folder,
        script_dir=script_dir,
        workers=workers.configs,
        broken_workers=workers.broken,
    ), list(problems)


def _placed_project(project: Project, folder: str) -> Project:
    """A folder is its own project, unless it is inside the one whose ork.yaml holds for it."""
    return (
        project if project_folder_of(project, folder) is not None else replaced(project, folder=folder, pythonpath=())
    )


def _content(file: str) -> bytes:
    try:
        with open(file, "rb") as source:
            return source.read()
    except FileNotFoundError:
        return b""


def _placed(problem: Problem, root: str) -> Problem:
    """A file that a workflow speaks of is named as seen from the workflow's folder."""
    return replaced(problem, file=os.path.join(root, problem.file))


def _workflow_json(read: Read, folder: str) -> dict[str, Any]:
    assert read.workflow is not None
    return {
        "name": read.workflow.name,
        "file": os.path.relpath(read.file, folder),
        "root": os.path.relpath(read.root, folder),
        "definition": to_document(read.workflow),
    }


def _problem_json(problem: Problem) -> dict[str, Any]:
    """All of it, so that whoever reads the document can show it as if the file were there."""
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
