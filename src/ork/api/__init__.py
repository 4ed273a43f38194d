"""The HTTP API of a store. It never runs user code."""

from __future__ import annotations

PACKAGES = ("fastapi", "uvicorn", "prometheus_client")  # optional dependencies that the API needs
