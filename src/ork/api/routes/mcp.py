"""The Model Context Protocol over HTTP: the tools of `ork mcp`, with the rights of the request's token."""

from __future__ import annotations

import hashlib

from fastapi import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ork.api.context import Api, Caller, api_of, caller_of
from ork.api.routing import Routes
from ork.errors import NotFoundError
from ork.model.access import Role

routes = Routes("mcp")
_KEY_PURPOSE = b"ork mcp request state\0"


@routes.add("POST", "/mcp", Role.VIEWER, at_root=True, include_in_schema=False)
async def answer_mcp(request: Request) -> Response:
    """Answers one message of the Model Context Protocol. The server keeps no session between messages."""
    api = api_of(request)
    if not api.has_mcp:
        raise NotFoundError("this server offers no MCP tools", hint="start it with `ork serve --mcp`")
    return _McpResponse(api, caller_of(request))


class _McpResponse(Response):
    """Passes the request on to an MCP server that is made for it."""

    def __init__(self, api: Api, caller: Caller) -> None:
        super().__init__()
        self._api = api
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        from mcp.server.mcpserver import RequestStateSecurity
        from mcp.server.transport_security import TransportSecuritySettings

        from ork.api.tool_requests import InProcessRequests
        from ork.mcp.server import mcp_server

        requests = InProcessRequests(self._api, self._caller)
        # A question to the user is answered by another request, perhaps to another server of the same store.
        key = hashlib.sha256(_KEY_PURPOSE + await self._api.store.signing_key()).digest()
        security = RequestStateSecurity(keys=[key], bind_principal=lambda _context: self._caller.token_id)
        server = mcp_server(requests, self._caller.role, security)
        # The guard has checked host and origin.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        app = server.streamable_http_app(json_response=True, stateless_http=True, transport_security=unchecked)
        async with server.session_manager.run():
            await app(scope, receive, send)
