"""The HTTP API of a store. It never runs user code."""

from __future__ import annotations

from ork.errors import UsageError

PACKAGES = ("fastapi", "uvicorn", "prometheus_client")  # optional dependencies that the API needs


def check_packages(what: str, otherwise: str = "") -> None:
    """UsageError if packages that the API needs are not installed. `what` begins the message."""
    from importlib.util import find_spec

    missing = [name for name in PACKAGES if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"{what} packages that are not installed: {', '.join(missing)}",
            hint=f"pip install 'ork-orchestrator[server]'{otherwise}",
        )
