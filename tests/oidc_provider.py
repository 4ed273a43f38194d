"""A provider of OpenID Connect on loopback that can be made to say anything: what a real one never does.

`tests/dex.py` starts a real one.
"""

from __future__ import annotations

import base64
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote_plus, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT, SECRET = "ork", "a secret: +%/ of the client"


class OidcProvider:
    """`claims` are added to each id token, and replace those that a good provider would send."""

    def __init__(self) -> None:
        self.keys = [key_number(0)]
        self.claims: dict[str, Any] = {"email": "Ada@example.com", "email_verified": True, "groups": ["platform"]}
        self.userinfo: dict[str, Any] | None = None
        self.metadata: dict[str, Any] = {}
        self.signs_with: RSAKey | None = None
        self.algorithm = "RS256"
        self.access_token = "an access token"
        self.is_away = False
        self.allows_replays = False
        self.requests: list[str] = []
        self._codes: dict[str, dict[str, str]] = {}
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.issuer = f"http://127.0.0.1:{self._server.server_port}/oidc"

    def rotate(self) -> None:
        """A new key; tokens are signed with it from now on, and the old one is withdrawn."""
        self.keys = [key_number(1)]

    def sign_in(self, address: str) -> tuple[str, dict[str, str]]:
        """What the browser of a person who signs in is sent back to: the address, and the answer in its query."""
        asked = {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}
        assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
        assert asked["client_id"] == CLIENT
        code = secrets.token_urlsafe(16)
        self._codes[code] = asked
        return asked["redirect_uri"], {"code": code, "state": asked["state"]}

    def token_for(self, code: str, form: dict[str, str], headers: Any) -> tuple[int, Any]:
        kind, _, given = headers.get("Authorization", "").partition(" ")
        id, _, secret = base64.b64decode(given).decode().partition(":")
        if (kind, unquote_plus(id), unquote_plus(secret)) != ("Basic", CLIENT, SECRET):
            return 401, {"error": "invalid_client"}
        asked = self._codes.get(code) if self.allows_replays else self._codes.pop(code, None)
        challenge = (
            base64.urlsafe_b64encode(sha256(form.get("code_verifier", "").encode()).digest()).rstrip(b"=").decode()
        )
        if asked is None or asked["redirect_uri"] != form["redirect_uri"] or asked["code_challenge"] != challenge:
            return 400, {"error": "invalid_grant"}
        return 200, {
            "id_token": self.id_token(asked["nonce"]),
            "access_token": self.access_token,
            "token_type": "Bearer",
        }

    def id_token(self, nonce: str) -> str:
        now = int(time.time())
        good = {"iss": self.issuer, "sub": "ada-1", "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce}
        claims = {name: value for name, value in {**good, **self.claims}.items() if value is not None}
        if self.algorithm == "none":
            parts = ({"alg": "none"}, claims)
            return ".".join([*(_encoded(json.dumps(part).encode()) for part in parts), ""])
        key = self.signs_with or self.keys[-1]
        return jwt.encode({"alg": self.algorithm, "kid": key.kid}, claims, key, algorithms=[self.algorithm])

    def answer(self, path: str, form: dict[str, str], headers: Any) -> tuple[int, Any]:
        self.requests.append(path)
        if self.is_away:
            return 503, None
        base = self.issuer
        if path == "/oidc/.well-known/openid-configuration":
            return 200, {
                "issuer": base, "authorization_endpoint": f"{base}/auth", "token_endpoint": f"{base}/token",
                "jwks_uri": f"{base}/keys", "userinfo_endpoint": f"{base}/userinfo", **self.metadata,
            }  # fmt: skip
        if path == "/oidc/keys":
            return 200, {"keys": [{**key.as_dict(private=False), "use": "sig"} for key in self.keys]}
        if path == "/oidc/token":
            return self.token_for(form.get("code", ""), form, headers)
        if path == "/oidc/userinfo" and self.userinfo is not None:
            return 200, self.userinfo
        return 404, None

    @contextmanager
    def running(self) -> Iterator[OidcProvider]:
        thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._server.shutdown()
            self._server.server_close()


@cache
def key_number(_number: int) -> RSAKey:
    """Made once: that takes long."""
    return RSAKey.generate_key(2048, {"kid": secrets.token_hex(4)})


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _handler(provider: OidcProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer({})

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            self._answer({name: values[0] for name, values in parse_qs(body).items()})

        def _answer(self, form: dict[str, str]) -> None:
            status, found = provider.answer(urlsplit(self.path).path, form, self.headers)
            data = json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Nothing: tests look at `requests`."""

    return Handler
