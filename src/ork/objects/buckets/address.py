"""The URL of a bucket: gs://bucket/prefix, s3://bucket/prefix?region=…, az://container/prefix?account=…, each with `endpoint`."""

from __future__ import annotations

from ork.errors import ObjectsError
from ork.objects.buckets.environment import variables

SCHEMES = ("gs", "s3", "az")
_PARAMETERS = {"gs": ("endpoint",), "s3": ("region", "endpoint"), "az": ("account", "endpoint")}
_EXAMPLES = {
    "gs": "gs://bucket/prefix",
    "s3": "s3://bucket/prefix?region=eu-central-1",
    "az": "az://container/prefix?account=name",
}
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


class BucketAddress:
    """`prefix` is empty or ends with `/`. `endpoint` is None for the cloud's own service."""

    def __init__(self, scheme: str, bucket: str, prefix: str, parameters: dict[str, str]) -> None:
        self.scheme = scheme
        self.bucket = bucket
        self.prefix = prefix
        self.endpoint = parameters.get("endpoint", "").rstrip("/") or None
        self.region = parameters.get("region") or None
        self.account = parameters.get("account") or None
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        self.url = f"{scheme}://{bucket}/{prefix}".rstrip("/") + (f"?{query}" if query else "")

    def is_emulator(self) -> bool:
        """True for a service on this machine without encryption, which is used without credentials unless some are set."""
        from urllib.parse import urlsplit

        parts = urlsplit(self.endpoint or "")
        return parts.scheme == "http" and parts.hostname in _LOOPBACK


def is_bucket(url: str) -> bool:
    return url.partition("://")[0] in SCHEMES


def read_address(url: str) -> BucketAddress:
    """ObjectsError that names the mistake if this is not the URL of a bucket."""
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    bucket, _, prefix = place.partition("/")
    example = f"for example {_EXAMPLES.get(scheme, _EXAMPLES['gs'])}"
    if scheme not in SCHEMES or not bucket:
        raise ObjectsError(f"not the URL of a bucket: {url[:200]!r}", hint=example)
    if any(part in ("", ".", "..") for part in prefix.rstrip("/").split("/")) and prefix.strip("/"):
        raise ObjectsError(f"not a prefix of keys: {prefix[:200]!r}", hint=example)
    parameters = _parameters(scheme, query, example)
    if scheme == "az" and "account" not in parameters:
        value_of = variables(scheme)
        account = value_of("AZURE_STORAGE_ACCOUNT_NAME") or value_of("AZURE_STORAGE_ACCOUNT")
        if not account:
            raise ObjectsError(f"the storage account is missing in {url[:200]}", hint=example)
        parameters["account"] = account
    return BucketAddress(scheme, bucket, f"{prefix.strip('/')}/" if prefix.strip("/") else "", parameters)


def _parameters(scheme: str, query: str, example: str) -> dict[str, str]:
    found = {}
    for pair in filter(None, query.split("&")):
        name, _, value = pair.partition("=")
        if name not in _PARAMETERS[scheme] or not value:
            allowed = " and ".join(_PARAMETERS[scheme])
            raise ObjectsError(f"{scheme}:// URLs have the parameters {allowed}, not {pair[:200]!r}", hint=example)
        if name == "endpoint" and not value.startswith(("http://", "https://")):
            raise ObjectsError(f"endpoint is a URL with http:// or https://, not {value[:200]!r}", hint=example)
        found[name] = value
    return found
