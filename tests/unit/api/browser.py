"""A browser as the server sees it: it keeps cookies, and says where each request comes from."""

from __future__ import annotations

from typing import Any

import httpx

from ork.api.guard import RequestGuard
from tests.unit.api.conftest import check_response

HERE = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}


class Browser(httpx.AsyncClient):
    """A page of the server that is open in a browser. `half` is what the page keeps."""

    def __init__(self, app: RequestGuard, address: str = "http://127.0.0.1:8700", **headers: str) -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False, client=("127.0.0.1", 5))
        hooks = {"response": [check_response]}
        super().__init__(transport=transport, base_url=address, headers={**HERE, **headers}, event_hooks=hooks)
        self.half = ""

    async def sign_in(self, **body: str) -> httpx.Response:
        """Signs in with `token` or `ticket`, as the page does."""
        response = await self.post("/api/v1/session", json=body)
        if response.is_success:
            self.half = response.json()["half"]
        return response

    async def read(self, path: str = "/api/v1/runs", **headers: str) -> httpx.Response:
        return await self.get(path, headers={"X-Ork-Session": self.half, **headers})

    def without_cookies(self) -> None:
        self.cookies.clear()

    def cookie(self) -> tuple[str, str]:
        """The name and the value of the only cookie."""
        ((name, value),) = self.cookies.items()
        return name, value


async def ticket_for(client: httpx.AsyncClient) -> str:
    response = await client.post("/api/v1/ui-tickets")
    assert response.status_code == 201, response.text
    made: dict[str, Any] = response.json()
    return str(made["ticket"])
