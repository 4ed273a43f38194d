"""HTTP: the store for whoever is not on this machine. Nothing here runs user code."""

from __future__ import annotations

PACKAGES = ("fastapi", "uvicorn", "prometheus_client")  # that it needs, and that are not always installed
