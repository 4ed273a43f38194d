"""The version that runs the code of an earlier run again, although the project's files have changed since."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress

from ork.compile.content import make_version
from ork.errors import RefusedError
from ork.model.code import Code, code_difference, code_from_hashes
from ork.model.digest import sha256
from ork.model.infra import IMAGE_ROOT
from ork.model.record import replaced
from ork.model.workflow import Approval, CloudRunJob, Command, Const, SubWorkflow, TaskSpec, Version
from ork.source_code.git import check_out, commits_of, hashes_at, work_tree_of
from ork.source_code.read import CodeFolder, TooMuchCodeError, code_folders, combined_hash, file_hashes

MOST_COMMITS = 100
"""Commits of the current branch that are compared with the code of the run."""
_SHOWN = 3
_SHORT = 12


def same_code_version(version: Version, checkouts: str, script_dir: str | None = None) -> Version:
    """The version itself if its code is as it was, or is in images; else one in a checkout of its commit, below the folder
    `checkouts`. RefusedError says what is missing. Reads files and starts Git."""
    local = [spec for spec in version.workflow.tasks if _is_local(spec)]
    if not local or version.root.startswith(IMAGE_ROOT):
        return version
    code = _recorded(version)
    folders = code_folders(version.root, version.workflow)
    if not os.path.isdir(version.root):
        raise RefusedError(f"the project's folder {version.root} is not on this machine", hint="run this where it is")
    if _hash_now(folders) == code.hash:
        return version
    top = work_tree_of(folders[0].path)
    if top is None:
        raise RefusedError(
            f"the code has changed since, and {folders[0].path} is not in a Git repository",
            hint="commit the project, and run it from the commit: such runs can be repeated",
        )
    commit = _commit_with(top, code, folders)
    place = _checked_out(top, commit, folders, checkouts)
    return _moved(version, top, place, replaced(code, commit=commit, dirty=False), script_dir)


def _is_local(spec: TaskSpec) -> bool:
    """True if the task's code is in the project's folder. RefusedError if it is in a place that may change unnoticed."""
    if isinstance(spec.action, SubWorkflow):
        hint = f"use --same-code with a run of `{spec.action.name}`, or without this task"
        raise RefusedError(f"task `{spec.name}` runs the current version of workflow `{spec.action.name}`", hint=hint)
    if isinstance(spec.action, CloudRunJob):
        raise RefusedError(f"task `{spec.name}` runs Cloud Run job `{spec.action.job}`, whose image may have changed")
    if spec.image is not None and "@sha256:" not in spec.image:
        hint = "name the image by its digest (NAME@sha256:…), or deploy from an image location"
        raise RefusedError(f"task `{spec.name}` runs in image {spec.image}, which may have changed", hint=hint)
    return spec.image is None and not isinstance(spec.action, Approval)


def _recorded(version: Version) -> Code:
    if version.code is None:
        raise RefusedError(
            f"the code of version {version.id} was not recorded",
            hint="runs of versions from now on can be repeated if the project is in Git and has at most 5,000 files of code",
        )
    return version.code


def _hash_now(folders: Sequence[CodeFolder]) -> str | None:
    try:
        return combined_hash(file_hashes(folders))
    except TooMuchCodeError:
        return None


def _commit_with(top: str, code: Code, folders: Sequence[CodeFolder]) -> str:
    """A commit with this code: the recorded one, or a later one, if the code was committed only afterwards."""
    tried: dict[str, Code] = {}
    for commit in dict.fromkeys([*([code.commit] if code.commit else []), *commits_of(top, folders, MOST_COMMITS)]):
        try:
            hashes = hashes_at(top, commit, folders)
        except RefusedError:
            if commit != code.commit:
                raise
            continue  # it is gone, after a rebase for instance
        tried[commit] = code_from_hashes(combined_hash(hashes), hashes)
        if tried[commit].hash == code.hash:
            return commit
    hint = "commit before you run: then every run can be repeated"
    if code.commit is not None and code.commit not in tried:
        raise RefusedError(f"commit {code.commit[:_SHORT]} is no longer in the repository {top}", hint=hint)
    if not tried:
        raise RefusedError(f"the repository {top} has no commit of this project", hint=hint)
    nearest = next(iter(tried))
    raise RefusedError(f"no commit has this code: {_differs(nearest, tried[nearest], code)}", hint=hint)


def _differs(commit: str, there: Code, code: Code) -> str:
    found = code_difference(there, code)
    names = [] if found is None else [*(found.changed or ()), *(found.added or ()), *(found.removed or ())]
    if not names:
        return f"{commit[:_SHORT]} differs from it"
    more = f" and {len(names) - _SHOWN:,} more" if len(names) > _SHOWN else ""
    return f"{commit[:_SHORT]} differs from it in {', '.join(names[:_SHOWN])}{more}"


def _checked_out(top: str, commit: str, folders: Sequence[CodeFolder], checkouts: str) -> str:
    """The folder with the commit's files. It is kept: a later run with the same code uses it, too."""
    named = sha256("\0".join(folder.path for folder in folders).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    place = os.path.join(checkouts, f"{commit[:_SHORT]}-{named}")
    if os.path.isdir(place):
        with suppress(OSError):
            os.utime(place)  # `ork prune` removes those that are old
        return place
    os.makedirs(checkouts, exist_ok=True)
    scratch = tempfile.mkdtemp(prefix=".new-", dir=checkouts)
    try:
        check_out(top, commit, folders, os.path.join(scratch, "tree"))
        try:
            os.rename(os.path.join(scratch, "tree"), place)
        except OSError:
            if not os.path.isdir(place):  # another process was first
                raise
    except OSError as error:
        raise RefusedError(f"cannot write to {checkouts}: {error.strerror}") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return place


def _moved(version: Version, top: str, place: str, code: Code, script_dir: str | None) -> Version:
    """The version in the checkout. RefusedError if its files are not those of the run."""
    inside = os.path.relpath(os.path.realpath(version.root), os.path.realpath(top))
    root = os.path.normpath(os.path.join(place, inside))
    if _hash_now(code_folders(root, version.workflow)) != code.hash:
        hint = f"was something changed there? Remove the folder and try again: {place}"
        raise RefusedError(
            f"the files of commit {(code.commit or '')[:_SHORT]} in {root} are not those of the run", hint=hint
        )
    tasks = tuple(_in_place(spec, version.root, root, (top, place), script_dir) for spec in version.workflow.tasks)
    return make_version(replaced(version.workflow, tasks=tasks), root, version.source, code)


def _in_place(spec: TaskSpec, old_root: str, root: str, moved: tuple[str, str], script_dir: str | None) -> TaskSpec:
    """The task with what is found by a path from the project: its environment stays, its program is the checkout's."""
    environment, action = spec.environment, spec.action
    if (
        environment is not None
        and environment.path is not None
        and not os.path.lexists(os.path.join(root, environment.path))
    ):
        spec = replaced(spec, environment=replaced(environment, path=os.path.join(old_root, environment.path)))
    if script_dir is None or not isinstance(action, Command) or not isinstance(action.argv[0], Const):
        return spec
    top, place = moved
    program = os.path.join(script_dir, str(action.argv[0].value))
    copy = os.path.join(place, os.path.relpath(program, top))
    if "/" in str(action.argv[0].value) or not os.path.isfile(program) or not os.path.isfile(copy):
        return spec
    return replaced(spec, action=replaced(action, argv=(Const(copy), *action.argv[1:])))
