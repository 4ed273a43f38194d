"""Variables of the environment with credentials for a bucket, as each cloud documents them.

A scheduler passes them to its local workers under names of Ork's own, which tasks do not inherit.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PASSED = "ORK_STORE_"
_kept: dict[str, str] = {}
_NAMES = {
    "gs": ("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG", "GCE_METADATA_HOST"),
    "s3": (
        "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_DEFAULT_REGION",
        "AWS_ROLE_ARN", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_SESSION_NAME", "AWS_ENDPOINT_URL_STS",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    ),
    "az": (
        "AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCESS_KEY",
        "AZURE_STORAGE_SAS_TOKEN", "AZURE_STORAGE_SAS_KEY", "IDENTITY_ENDPOINT", "IDENTITY_HEADER", "AZURE_CLIENT_ID",
    ),
}  # fmt: skip


def names_to_pass(url: str) -> tuple[str, ...]:
    """The names under which the workers of a store are given its credentials; none for a store that is not a bucket."""
    return tuple(PASSED + name for name in _NAMES.get(url.partition("://")[0], ()))


def keep_passed() -> dict[str, str]:
    """Remembers the passed variables before the process of a task removes them from its environment, and returns them."""
    _kept.update((name, value) for name, value in os.environ.items() if name.startswith(PASSED))
    return _kept


def variables(scheme: str) -> Callable[[str], str]:
    """Returns a function from the name of a variable to its value, "" if it is not set."""
    passed = keep_passed()
    found = {name: passed.get(PASSED + name) or os.environ.get(name) or "" for name in _NAMES[scheme]}
    return found.__getitem__
