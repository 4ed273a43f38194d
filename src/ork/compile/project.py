"""The position of a workflow's folder in its project, and what the project adds."""

from __future__ import annotations

from functools import lru_cache
from posixpath import join, normpath, relpath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ork.definition.project import Project


def import_folders(project: Project | None, root: str) -> dict[str, Any]:
    """The fields of a compiled workflow that say where its tasks import from, besides its own folder."""
    folder = project_folder_of(project, root)
    if project is None or folder is None:
        return {}
    return {"project": relpath(folder, root) if folder != root else None, "pythonpath": project.pythonpath}


def codecs_of(project: Project | None, root: str) -> tuple[tuple[str, str], ...]:
    """The project's codecs, for a workflow in its folder."""
    if project is None or project_folder_of(project, root) is None:
        return ()
    return tuple(sorted(project.codecs.items()))


@lru_cache(maxsize=100)
def import_paths(root: str, project: str | None = None, pythonpath: tuple[str, ...] = ()) -> tuple[str, ...]:
    """The folders that tasks import from after the workflow's own (`root`). Called for every launch."""
    folder = normpath(join(root, project or "."))
    own = (folder,) if project is not None else ()
    return own + tuple(normpath(join(folder, path)) for path in pythonpath)


def project_folder_of(project: Project | None, root: str) -> str | None:
    """The project's folder, if it contains the workflow's folder `root`."""
    folder = project.folder if project is not None else None
    if folder is None or not f"{root}/".startswith(f"{folder.rstrip('/')}/"):
        return None
    return folder


def relative_to_root(root: str, folder: str, path: str) -> str:
    """A path that starts with / in the project's folder, relative to the workflow's folder `root`."""
    found = relpath(f"{folder}/{path.lstrip('/')}", root)
    return found if "/" in found else f"./{found}"
