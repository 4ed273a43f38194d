"""Names of Prefect that imported functions use. Copied here by `ork import prefect`; this file belongs to your project."""

from __future__ import annotations

import logging
import os
from typing import Any


def get_run_logger() -> logging.Logger:
    return logging.getLogger("task")


class Variable:
    """`Variable.get("name")` reads PREFECT_VARIABLE_NAME."""

    @staticmethod
    def get(name: str, default: Any = None) -> Any:
        return os.environ.get(f"PREFECT_VARIABLE_{name.upper().replace('-', '_')}", default)
