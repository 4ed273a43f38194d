"""Writes the YAML of imported workflows: keys in a fixed order, scripts as blocks, no anchors."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import yaml

from ork.definition.yaml_tree import template_in

MAX_INLINE = 100


class _Inline(dict[str, Any]):
    """A map that is written on one line."""


class _InlineList(list[Any]):
    """A list that is written on one line."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    is_block = "\n" in text and text.isprintable() is False and _fits_block(text)
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if is_block else None)


def _fits_block(text: str) -> bool:
    """Whether a block scalar keeps the text as it is."""
    lines = text.split("\n")
    is_plain = all(line.isprintable() or line.replace("\t", "").isprintable() for line in lines)
    return is_plain and all(line == line.rstrip() for line in lines) and not text.startswith((" ", "\n"))


def _map(dumper: yaml.SafeDumper, value: _Inline) -> yaml.MappingNode:
    return dumper.represent_mapping("tag:yaml.org,2002:map", value.items(), flow_style=True)


def _list(dumper: yaml.SafeDumper, value: _InlineList) -> yaml.SequenceNode:
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)


_Dumper.add_representer(_InlineList, _list)
_Dumper.add_representer(str, _text)
_Dumper.add_representer(_Inline, _map)


def yaml_text(value: dict[str, Any]) -> str:
    """The map as a YAML document. Small maps such as `{ref: …}` are written on one line."""
    shaped = {key: _shaped(item) for key, item in value.items()}
    return yaml.dump(
        shaped, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10_000, default_flow_style=False
    )


def literal(value: Any) -> Any:
    """The value as a constant: `{const: …}` if Ork would read it as a template or a reference."""
    return {"const": value} if _needs_const(value) else value


def _needs_const(value: Any) -> bool:
    if isinstance(value, str):
        return template_in(value) is not None
    if isinstance(value, dict):
        return any(key in ("ref", "secret", "const") for key in value) or any(map(_needs_const, value.values()))
    return isinstance(value, list) and any(map(_needs_const, value))


def _shaped(value: Any) -> Any:
    if isinstance(value, dict):
        shaped = {key: _shaped(item) for key, item in value.items()}
        is_small = all(not isinstance(item, dict | list) for item in shaped.values()) and _is_short(shaped.values())
        return _Inline(shaped) if is_small and len(shaped) <= 3 else shaped
    if isinstance(value, list | tuple):
        items = [_shaped(item) for item in value]
        is_flat = all(not isinstance(item, dict | list) or isinstance(item, _Inline) for item in items)
        return _InlineList(items) if is_flat and _is_short(items) else items
    return value


def _is_short(values: Iterable[Any]) -> bool:
    texts = [str(item) for item in values]
    return not any("\n" in text for text in texts) and sum(map(len, texts)) < MAX_INLINE
