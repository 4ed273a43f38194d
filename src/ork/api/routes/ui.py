"""The pages and files of the web UI. They are the same for everyone; what they show comes from the API."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fastapi import Request
from starlette.responses import RedirectResponse, Response

from ork.api.compression import accepts_gzip
from ork.api.context import Api, api_of
from ork.api.routing import Routes

if TYPE_CHECKING:
    from ork.ui.assets import WebFile, WebFiles

routes = Routes("ui")

START = "/ui/"
FOREVER = "public, max-age=31536000, immutable"
_HTML = "text/html; charset=utf-8"
_MISSING = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Ork</title>
<h1>No web UI</h1>
<p>This installation was packaged without the web UI. The server works, and so do the command line and the API.</p>
</html>
"""


@routes.add("GET", "/", None, at_root=True, is_page=True, include_in_schema=False, response_class=Response)
@routes.add("GET", "/ui", None, at_root=True, is_page=True, include_in_schema=False, response_class=Response)
async def redirect_to_ui() -> Response:
    return RedirectResponse(START, 307)


@routes.add(
    "GET",
    "/ui/assets/{build}/{name:path}",
    None,
    at_root=True,
    is_page=True,
    include_in_schema=False,
    response_class=Response,
)
async def get_asset(request: Request, build: str, name: str) -> Response:
    """A file of the current build. A page of another build gets 404 for files that it loads late, and says so."""
    files = await web_files(api_of(request))
    found = files.assets.get(name) if files is not None and files.build == build else None
    if found is None:
        return Response("there is no such file in this build\n", 404, media_type="text/plain; charset=utf-8")
    return _sent(request, found, {"Cache-Control": FOREVER})


@routes.add(
    "GET", "/ui/{path:path}", None, at_root=True, is_page=True, include_in_schema=False, response_class=Response
)
async def get_page(request: Request) -> Response:
    """The same page for every path: it reads its address itself."""
    files = await web_files(api_of(request))
    if files is None:
        return Response(_MISSING, 404, media_type=_HTML)
    tag = f'W/"{files.build}-{files.version}"'
    headers = {"Cache-Control": "no-cache", "ETag": tag}
    if tag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return _sent(request, files.page, headers)


async def web_files(api: Api) -> WebFiles | None:
    """Read and compressed at the first request."""
    from ork.ui.assets import WebFiles, read_files

    if WebFiles not in api.kept:
        api.kept[WebFiles] = await asyncio.to_thread(read_files)
    found: WebFiles | None = api.kept[WebFiles]
    return found


def _sent(request: Request, file: WebFile, headers: dict[str, str]) -> Response:
    headers = {**headers, "Vary": "Accept-Encoding"}
    if file.compressed is not None and accepts_gzip(request.headers.get("accept-encoding", "")):
        return Response(file.compressed, 200, {**headers, "Content-Encoding": "gzip"}, file.kind)
    return Response(file.body, 200, headers, file.kind)
