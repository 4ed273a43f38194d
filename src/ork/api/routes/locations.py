"""Code locations: the images and folders that workflows come from. Schedulers refresh them."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from ork.api import models
from ork.api.bodies import json_response
from ork.api.context import api_of, caller_of
from ork.api.parameters import LARGEST_PAGE, Limit, LocationName, NameCursor
from ork.api.routing import Routes
from ork.errors import NotFoundError
from ork.model.access import Role
from ork.status.locations import location_json, view_locations

routes = Routes("locations")


@routes.add("GET", "/locations", Role.VIEWER, response_model=models.LocationPage)
async def list_locations(request: Request, limit: Limit = LARGEST_PAGE, cursor: NameCursor = None) -> Response:
    """Lists locations by name, each with its workflows and the error of the last refresh. The cursor is the last name
    of the previous page."""
    api = api_of(request)
    views = [view for view in await view_locations(api.store) if cursor is None or view.entry.name > cursor]
    rows = [location_json(view, api.now()) for view in views[:limit]]
    return json_response({"locations": rows, "cursor": rows[-1]["name"] if len(views) > limit else None})


@routes.add("POST", "/locations/{name}/refresh", Role.OPERATOR, status_code=202, response_model=models.Location)
async def refresh_location(request: Request, name: LocationName) -> Response:
    """Asks a scheduler to refresh the location; `looked_at` shows when it has. A location that failed is read again."""
    api, caller = api_of(request), caller_of(request)
    if not await api.store.ask_refresh(name, api.now()):
        raise NotFoundError(f"no location `{name}`", hint="`ork locations` lists them")
    await api.record_change(caller, "location.refresh", name)
    view = next(view for view in await view_locations(api.store) if view.entry.name == name)
    return json_response(location_json(view, api.now()), 202)
