"""Names of Dagster that imported functions use. Copied here by `ork import dagster`; this file belongs to your project."""

from __future__ import annotations

import logging
import os
from typing import Any


class Output:
    """`Output(value)`: the value is the output of the task."""

    def __init__(self, value: Any = None, output_name: str = "result", metadata: Any = None, **_: Any) -> None:
        self.value, self.output_name, self.metadata = value, output_name, metadata


class DynamicOutput(Output):
    """One item of a fan-out."""

    def __init__(self, value: Any, mapping_key: str = "", **given: Any) -> None:
        super().__init__(value, **given)
        self.mapping_key = mapping_key


class MaterializeResult:
    def __init__(self, metadata: Any = None, value: Any = None, **_: Any) -> None:
        self.metadata, self.value = metadata, value


class AssetMaterialization(MaterializeResult):
    pass


class Failure(Exception):  # noqa: N818 - its name in Dagster
    def __init__(self, description: str = "", metadata: Any = None, **_: Any) -> None:
        super().__init__(description)
        self.metadata = metadata


class EnvVar(str):
    """`EnvVar("NAME")` is the variable's value."""

    def __new__(cls, name: str) -> EnvVar:
        return super().__new__(cls, os.environ[name])

    def get_value(self) -> str:
        return str(self)


class _Metadata:
    def __getattr__(self, _name: str) -> Any:
        return lambda value, *_, **__: value


MetadataValue = _Metadata()
AssetExecutionContext = OpExecutionContext = Any


def get_dagster_logger(name: str = "task") -> logging.Logger:
    return logging.getLogger(name)


class Context:
    """The parts of Dagster's context that do not depend on its instance."""

    def __init__(self, ctx: Any) -> None:
        self.run_id = ctx.run_id
        self.retry_number = ctx.attempt - 1
        self.log = logging.getLogger(ctx.task_name)
        self.op_config: dict[str, Any] = dict(ctx.params or {})

    def add_output_metadata(self, metadata: Any, **_: Any) -> None:
        self.log.info("metadata: %s", metadata)


def value_of(found: Any) -> Any:
    """The output of a task: without Dagster's wrappers, and a list for a generator of dynamic outputs."""
    if hasattr(found, "__next__"):
        items = [each for each in found if isinstance(each, Output)]
        if items and all(isinstance(each, DynamicOutput) for each in items):
            return [each.value for each in items]
        return (
            {each.output_name: each.value for each in items} if len(items) > 1 else (items[0].value if items else None)
        )
    if isinstance(found, list) and found and all(isinstance(each, DynamicOutput) for each in found):
        return [each.value for each in found]
    return found.value if isinstance(found, Output | MaterializeResult) else found
