"""Connections to addresses that the outbound rule permits, and to no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2

from ork.outbound.addresses import permitted_addresses
from ork.outbound.clients import transport_to

if TYPE_CHECKING:
    from ork.model.outbound import OutboundRule


class CheckedTransport(httpx2.AsyncBaseTransport):
    """Resolves the host, checks its addresses, and connects to exactly the address that was checked, which prevents DNS
    rebinding. The Host header and the TLS handshake use the name, so the certificate is verified for the name. No proxy
    is used, because it would resolve the name itself.
    """

    def __init__(self, url: str, rule: OutboundRule) -> None:
        # Connections are not reused: one that was opened for a name must not serve another name at the same address.
        self._transport = transport_to(url)
        self._rule = rule

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.raw_host.decode("ascii")
        port = request.url.port or (443 if request.url.scheme == "https" else 80)
        *others, last = await permitted_addresses(host, port, self._rule)
        for address in others:
            try:
                return await self._send(request, host, address)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                continue  # nothing was sent
        return await self._send(request, host, last)

    async def _send(self, request: httpx2.Request, host: str, address: str) -> httpx2.Response:
        return await self._transport.handle_async_request(
            httpx2.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={**request.extensions, "sni_hostname": host},
            )
        )

    async def aclose(self) -> None:
        await self._transport.aclose()
