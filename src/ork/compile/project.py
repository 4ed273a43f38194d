"""Where a workflow's folder is inside its project, and what the project adds to it."""

from __future__ import annotations

from posixpath import join, normpath, relpath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ork.definition.project_file import Project
    from ork.model.workflow import CompiledWorkflow


def import_folders(project: Project | None, root: str) -> dict[str, Any]:
    """The fields of a compiled workflow that say what its tasks import from, beside the workflow's own folder."""
    folder = folder_around(project, root)
    if project is None or folder is None:
        return {}
    return {"project": relpath(folder, root) if folder != root else None, "pythonpath": project.pythonpath}


def import_paths(workflow: CompiledWorkflow, root: str) -> list[str]:
    """The folders that tasks import from after the workflow's own, which is `root`."""
    project = normpath(join(root, workflow.project or "."))
    own = [project] if workflow.project is not None else []
    return own + [normpath(join(project, path)) for path in workflow.pythonpath]


def folder_around(project: Project | None, root: str) -> str | None:
    """The project's folder, if the workflow's folder `root` is in it."""
    folder = project.folder if project is not None else None
    if folder is None or not f"{root}/".startswith(f"{folder.rstrip('/')}/"):
        return None
    return folder


def seen_from(root: str, folder: str, path: str) -> str:
    """A path that begins with / at the project's folder, as seen from the workflow's folder `root`."""
    found = relpath(f"{folder}/{path.lstrip('/')}", root)
    return found if "/" in found else f"./{found}"
