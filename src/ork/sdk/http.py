"""The executor `http`: sends a request; the response is the output."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ork.sdk.context import Context
from ork.sdk.errors import TaskError
from ork.sdk.web import LIMIT, HttpResponse, WebError, check_url, fetch

# Responses worth a retry.
_TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass
class HttpDefaults:
    """Settings in ork.yaml, shared by all tasks of this executor."""

    base_url: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    timeout: float = 30.0


class HttpExecutor:
    """Fails, and may be retried, if there is no response or an unexpected status."""

    @dataclass
    class TaskConfig:
        url: str
        method: str = "GET"
        headers: dict[str, str] = field(default_factory=dict)
        params: dict[str, Any] = field(default_factory=dict)
        json: Any = None
        body: str | None = None
        timeout: float | None = None
        expect: int | list[int] | None = None  # any 2xx
        output: str = "auto"  # auto, json, text, none
        limit: int = LIMIT

    def __init__(self, config: HttpDefaults) -> None:
        self._defaults = config

    def run(self, context: Context, config: TaskConfig, inputs: dict[str, Any]) -> Any:
        """Inputs are sent as a JSON object by POST, PUT and PATCH, unless the task sets a body."""
        method = config.method.upper()
        headers = {**self._defaults.headers, **config.headers}
        body = _body(config, method, inputs, headers)
        url = _url(self._defaults.base_url, config.url, config.params)
        try:
            check_url(url)
        except ValueError as error:
            raise TaskError(str(error), retry=False) from None
        context.log.info("%s %s", method, url.partition("?")[0])
        timeout = config.timeout or self._defaults.timeout
        try:
            answer = fetch(url, method=method, headers=headers, body=body, timeout=timeout, limit=config.limit)
        except WebError as error:
            raise TaskError(str(error)) from None
        context.log.info("%s, %d bytes", answer.status, len(answer.body))
        _check_status(answer, config.expect)
        return _output(answer, config.output)


def _url(base: str, url: str, params: dict[str, Any]) -> str:
    from urllib.parse import urlencode

    whole = base.rstrip("/") + "/" + url.lstrip("/") if base and "://" not in url else url
    if not params:
        return whole
    given = {name: _text(value) for name, value in params.items() if value is not None}
    return whole + ("&" if "?" in whole else "?") + urlencode(given, doseq=True)


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return [_text(item) for item in value] if isinstance(value, list) else value


def _body(
    config: HttpExecutor.TaskConfig, method: str, inputs: dict[str, Any], headers: dict[str, str]
) -> bytes | None:
    if config.body is not None:
        if config.json is not None:
            raise TaskError("`json` and `body` exclude each other", retry=False)
        return config.body.encode()
    value = config.json
    if value is None and inputs and method in ("POST", "PUT", "PATCH"):
        value = inputs
    if value is None:
        return None
    import json

    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return json.dumps(value, allow_nan=False).encode()


def _check_status(answer: HttpResponse, expect: int | list[int] | None) -> None:
    if expect is None:
        is_expected, wanted = 200 <= answer.status < 300, "2xx"
    else:
        several = expect if isinstance(expect, list) else [expect]
        is_expected, wanted = answer.status in several, " or ".join(map(str, several))
    if not is_expected:
        message = f"returned status {answer.status}, expected {wanted}: {answer.shown() or '(empty)'}"
        raise TaskError(message, retry=answer.status in _TEMPORARY or answer.status < 400)


def _output(answer: HttpResponse, wanted: str) -> Any:
    if wanted not in ("auto", "json", "text", "none"):
        raise TaskError(f"`output: {wanted}` is none of auto, json, text, none", retry=False)
    if wanted == "none" or (wanted == "auto" and not answer.body):
        return None
    if wanted == "text" or (wanted == "auto" and "json" not in answer.content_type):
        return answer.text
    try:
        return answer.json()
    except ValueError as error:
        raise TaskError(f"{error}; it begins with {answer.shown()[:80]!r}", retry=False) from None
