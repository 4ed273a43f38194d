"""Texts with templates as words of commands, variables and scripts."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from typing import Any

from ork.importers.airflow.arguments import ArgumentCode, input_value
from ork.importers.airflow.dag_builder import DagBuilder
from ork.importers.airflow.objects import Operator, TaskOutput
from ork.importers.airflow.templates import Piece, TemplateError, pieces_of
from ork.importers.project import Untranslatable, identifier
from ork.importers.python.values import ForeignCall
from ork.importers.shell import variable_for, with_expansion
from ork.importers.yaml_text import literal


def word(value: Any, operator: Operator, builder: DagBuilder) -> Any:
    """A word of a command or a value of `env`: text, or a reference. Raises Untranslatable."""
    if isinstance(value, TaskOutput):
        return input_value(value, builder)
    if isinstance(value, bool | int | float):
        return str(value)
    if not isinstance(value, str):
        return _computed_value(value, operator, builder)
    parts = template_pieces(value, operator, builder)
    if all(isinstance(part, str) or part.const is not None for part in parts):
        return literal("".join(part if isinstance(part, str) else part.const or "" for part in parts))
    if len(parts) == 1 and isinstance(parts[0], Piece) and (parts[0].ref or parts[0].secret):
        return {"ref": parts[0].ref} if parts[0].ref else {"secret": parts[0].secret}
    return {"ref": computed(value, parts, operator, builder)}


def _computed_value(value: Any, operator: Operator, builder: DagBuilder) -> Any:
    """A reference to a value that the helper task computes with the code of the file."""
    arguments = ArgumentCode(operator, builder)
    code = arguments.code(value)
    if arguments.inputs or isinstance(value, dict | list):
        raise Untranslatable("one of its arguments is known only when the file is run")
    return {"ref": builder.value_ref(f"{identifier(builder.names[operator.task_id])}_value", f"str({code})")}


def computed(text: str, parts: list[str | Piece], operator: Operator, builder: DagBuilder) -> str:
    """A reference to a text that the helper task puts together. Outputs of tasks cannot be part of it."""
    pieces = [part for part in parts if isinstance(part, Piece)]
    if any(part.tasks for part in pieces):
        raise Untranslatable(f"`{text[:60]}` mixes text with the output of a task")
    before = set(builder.secrets.get(operator.task_id, set()))
    arguments = ArgumentCode(operator, builder)
    code = arguments.code(text)
    added = builder.secrets.get(operator.task_id, set()) - before
    if added:
        builder.secrets.setdefault("airflow_values", set()).update(added)
    name = pieces[0].name if len(parts) == 1 else f"{identifier(builder.names[operator.task_id])}_text"
    return builder.value_ref(name, code)


def template_pieces(text: str, operator: Operator, builder: DagBuilder) -> list[str | Piece]:
    try:
        return pieces_of(text, operator, builder)
    except TemplateError as error:
        raise Untranslatable(str(error)) from error


def environment_of(given: Any, operator: Operator, builder: DagBuilder) -> dict[str, Any]:
    if given is None:
        return {}
    if isinstance(given, list):  # of KubernetesPodOperator: V1EnvVar objects or dicts
        pairs = [_env_pair(each) for each in given]
        if any(pair is None for pair in pairs):
            raise Untranslatable("its environment is known only when the file is run")
        given = dict(pair for pair in pairs if pair)
    if not isinstance(given, dict):
        raise Untranslatable("its environment is known only when the file is run")
    found: dict[str, Any] = {}
    for key, value in given.items():
        if isinstance(value, dict) and set(value) == {"secret"}:
            builder.project.secrets[str(key)] = "a secret of the cluster"
            found[str(key)] = value
        elif value is not None:
            found[str(key)] = word(value, operator, builder)
    return found


def _env_pair(value: Any) -> tuple[str, Any] | None:
    given = value.keywords if isinstance(value, ForeignCall) else value if isinstance(value, dict) else {}
    if isinstance(given.get("name"), str) and "value" in given:
        return given["name"], given["value"]
    if isinstance(given.get("name"), str) and given.get("value_from") is not None:
        return given["name"], {"secret": given["name"]}
    return None


def builder_file(name: str, builder: DagBuilder) -> str | None:
    """The text of a file that a template names, from the DAG's folder or its `template_searchpath`."""
    from ork.importers.sources import read_text

    root = builder.files.sources.root
    own = os.path.dirname(os.path.join(root, *builder.dag.module.name.split(".")[:-1], "x"))
    search = builder.dag.keywords.get("template_searchpath")
    folders = [own, root, os.path.dirname(root)]
    for each in [search] if isinstance(search, str) else search if isinstance(search, list) else []:
        if isinstance(each, str):
            tail = [part for part in each.split("/") if part and "{{" not in part]
            folders += [os.path.join(root, *tail[index:]) for index in range(len(tail))]
            folders += [os.path.join(os.path.dirname(root), *tail[index:]) for index in range(len(tail))]
    for folder in folders:
        path = os.path.normpath(os.path.join(folder, name.lstrip("/")))
        if os.path.isfile(path):
            return read_text(path)
    return None


def shell_script(parts: list[str | Piece], operator: Operator, builder: DagBuilder) -> tuple[str, dict[str, Any]]:
    """The script with variables in place of templates, and these variables."""
    script = ""
    env: dict[str, Any] = {}
    for part in parts:
        if isinstance(part, str) or part.const is not None:
            script += part if isinstance(part, str) else part.const or ""
            continue
        if part.variable is not None:
            builder.project.pass_env.append(part.variable[0])
            default = part.variable[1]
            expansion = "${" + part.variable[0] + (f":-{default}" if default else "") + "}"
        else:
            value: Any = (
                {"secret": part.secret} if part.secret else {"ref": part.ref or _helper_ref(part, operator, builder)}
            )
            expansion = "${" + variable_for(part.name, value, env) + "}"
        script = with_expansion(script, expansion)
    return script, env


def _helper_ref(piece: Piece, operator: Operator, builder: DagBuilder) -> str:
    arguments = ArgumentCode(operator, builder)
    code = arguments._piece(piece)
    if arguments.inputs:
        raise Untranslatable("its template uses the output of a task in an expression")
    return builder.value_ref(piece.name, code)


def words_of(command: Any, operator: Operator, builder: DagBuilder) -> list[Any]:
    if isinstance(command, str) and command.strip().startswith("[") and "{{" not in command:
        import ast

        with suppress(ValueError, SyntaxError):
            command = ast.literal_eval(command)
    if isinstance(command, str):
        command = split_words(command)
    if not isinstance(command, list | tuple):
        raise Untranslatable("its command is known only when the file is run")
    return [word(each, operator, builder) for each in command]


def split_words(command: str) -> list[str]:
    """Words as a shell splits them; a template is part of one word."""
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(match[0])
        return f"\x01{len(held) - 1}\x02"

    kept = re.sub(r"\{\{.*?\}\}", hold, command, flags=re.S)
    try:
        words = shlex.split(kept)
    except ValueError as error:
        raise Untranslatable(f"its command cannot be split into words: {error}") from error
    return [re.sub("\x01(\\d+)\x02", lambda match: held[int(match[1])], each) for each in words]
