"""Where a workflow's folder is inside its project, and what the project adds to it."""

from __future__ import annotations

from functools import lru_cache
from posixpath import join, normpath, relpath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ork.definition.project import Project


def import_folders(project: Project | None, root: str) -> dict[str, Any]:
    """The fields of a compiled workflow that say what its tasks import from, beside the workflow's own folder."""
    folder = folder_around(project, root)
    if project is None or folder is None:
        return {}
    return {"project": relpath(folder, root) if folder != root else None, "pythonpath": project.pythonpath}


@lru_cache(maxsize=100)
def import_paths(root: str, project: str | None = None, pythonpath: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The folders that tasks import from after the workflow's own, which is `root`. Every launch asks."""
    folder = normpath(join(root, project or "."))
    own = (folder,) if project is not None else ()
    return own + tuple(normpath(join(folder, path)) for path in pythonpath)


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
