"""The page of a sign-in that did not succeed. It has no script of its own; its texts are shown as text."""

from __future__ import annotations

import re
from html import escape
from urllib.parse import urlencode

from starlette.responses import Response

from ork.api.oidc.failures import SignInFailure
from ork.api.oidc.flow import HOME, PATH

_CODE = re.compile(r"`([^`]+)`")
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title} – Ork</title>
{assets}</head>
"""
_ASSETS = """<link rel="icon" type="image/svg+xml" href="/ui/assets/{build}/icon.svg">
<link rel="stylesheet" href="/ui/assets/{build}/app.css">
<script src="/ui/assets/{build}/theme.js"></script>
"""
_BODY = """<body>
<main class="alone"><section class="sign-in">
<h1>{title}</h1>
<p>{detail}</p>
{hint}<div class="row"><a class="button primary" href="{again}">{verb}</a> <a class="button" href="{home}">Sign in with a token</a></div>
</section></main>
</body>
</html>
"""


def failure_page(failure: SignInFailure, build: str | None, back: str) -> Response:
    """`build` names the files of the web UI; None without them. Both links lead to `back`, the page that the person wanted."""
    title = escape(failure.title)
    is_known = failure.status == 403  # the provider knows somebody who may not sign in
    verb = "Use another account" if is_known else "Try again"
    query = {**({"account": "other"} if is_known else {}), **({} if back == HOME else {"back": back})}
    again = escape(f"{PATH}start" + (f"?{urlencode(query)}" if query else ""))
    hint = f'<p class="dim">{_marked(failure.hint)}</p>\n' if failure.hint else ""
    head = _HEAD.format(title=title, assets=_ASSETS.format(build=escape(build)) if build else "")
    body = _BODY.format(
        title=title, detail=_marked(failure.detail), hint=hint, again=again, verb=verb, home=escape(back)
    )
    headers = {"Retry-After": "5"} if failure.status in (429, 503) else {}
    return Response(head + body, failure.status, headers, "text/html; charset=utf-8")


def _marked(text: str) -> str:
    return _CODE.sub(r"<code>\1</code>", escape(text))
