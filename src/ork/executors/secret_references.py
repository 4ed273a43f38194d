"""Variables of a program whose secrets a platform fills in by itself."""

from __future__ import annotations

from collections.abc import Mapping
from secrets import token_hex
from typing import Any

from ork.executors.docker.container_documents import ContainerDocuments


async def variables_and_references(
    documents: ContainerDocuments, spec: dict[str, Any], references: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """The task's variables with values, and those that are secrets, each with its reference. `references` are by the variable in
    which a worker would get the secret."""
    marks = {variable: token_hex(16) for variable in references}
    env = await documents.calls.call(documents.environment, spec, marks)
    by_mark = {mark: references[variable] for variable, mark in marks.items()}
    secrets = {name: by_mark[value] for name, value in env.items() if value in by_mark}
    return {name: value for name, value in env.items() if name not in secrets}, secrets
