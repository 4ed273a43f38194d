"""Draws the graph of a workflow: as text for a terminal, as Mermaid, or as SVG."""

from __future__ import annotations

from collections.abc import Mapping

from ork.compile.graph import in_topological_order
from ork.definition.problems import printable
from ork.model.workflow import CompiledWorkflow

# Larger graphs are shown as a list.
_MAX_DRAWN_TASKS = 400
_MAX_RAILS = 24

_NODE_HEIGHT, _LAYER_GAP, _ROW_GAP, _MARGIN, _CHARACTER = 34, 56, 16, 20, 7.6
_MAX_LABEL = 40


def draw_text(workflow: CompiledWorkflow) -> list[str]:
    """One line per task, below its dependencies, with connecting lines."""
    links = _links(workflow)
    if len(links) > _MAX_DRAWN_TASKS:
        return _listed(links)
    rails = _Rails(_downstream(links))
    for name in in_topological_order(links):
        rails.draw(name)
        if rails.widest > _MAX_RAILS:
            return _listed(links)
    return rails.lines


def draw_mermaid(workflow: CompiledWorkflow) -> str:
    numbers = {task.name: f"t{index}" for index, task in enumerate(workflow.tasks)}
    lines = ["flowchart LR"]
    lines += [f'  {numbers[task.name]}["{task.name}"]' for task in workflow.tasks]
    lines += [f"  {numbers[above]} --> {numbers[task.name]}" for task in workflow.tasks for above in task.depends_on]
    return "\n".join(lines) + "\n"


def draw_svg(workflow: CompiledWorkflow, *, states: Mapping[str, str] | None = None) -> str:
    """A self-contained SVG: no scripts, no fonts, readable on light and dark backgrounds.

    With `states` the page provides the style, and each task gets the class named there.
    """
    links = _links(workflow)
    layers = _layers(links)
    boxes, width, height = _boxes(layers)
    edges = [_edge(boxes[above], boxes[name]) for name, depends_on in links.items() for above in depends_on]
    nodes = [_box(name, box, (states or {}).get(name)) for name, box in boxes.items()]
    style = f"<style>{_STYLE}</style>\n" if states is None else ""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="graph" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">\n'
        f"<title>{_escaped(workflow.name)}</title>\n{style}" + "\n".join([*edges, *nodes]) + "\n</svg>\n"
    )


def _links(workflow: CompiledWorkflow) -> dict[str, tuple[str, ...]]:
    return {task.name: task.depends_on for task in workflow.tasks}


def _downstream(links: dict[str, tuple[str, ...]]) -> dict[str, list[str]]:
    below: dict[str, list[str]] = {name: [] for name in links}
    for name, depends_on in links.items():
        for above in depends_on:
            below[above].append(name)
    return below


def _listed(links: dict[str, tuple[str, ...]]) -> list[str]:
    return [f"{name} ← {', '.join(links[name])}" if links[name] else name for name in in_topological_order(links)]


class _Rails:
    """Open lines from left to right, each leading to a task that is not drawn yet.

    A line keeps its column until it ends; None is a free column.
    """

    def __init__(self, downstream: dict[str, list[str]]) -> None:
        self.lines: list[str] = []
        self.widest = 0
        self._downstream = downstream
        self._rails: list[str | None] = []

    def draw(self, name: str) -> None:
        column = self._rails.index(name) if name in self._rails else self._free_column(0)
        self._rails[column] = name
        cells = ["●" if index == column else _rail(target) for index, target in enumerate(self._rails)]
        self.lines.append(f"{' '.join(cells).rstrip()} {printable(name)}")
        self._rails[column] = None
        self._branch(column, self._downstream[name])
        self.widest = max(self.widest, len(self._rails))
        while self._rails and self._rails[-1] is None:
            self._rails.pop()

    def _branch(self, column: int, targets: list[str]) -> None:
        """Connect the task just drawn to existing lines to its targets, or open new ones."""
        fresh = [target for target in targets if target not in self._rails]
        joined = {self._rails.index(target) for target in targets if target in self._rails}
        opened = set()
        for target in fresh:
            free = self._free_column(column)
            self._rails[free] = target
            opened.add(free)
        if targets:
            self.lines.append(_connector(column, joined, opened, self._rails))

    def _free_column(self, start: int) -> int:
        free = next((index for index in range(start, len(self._rails)) if self._rails[index] is None), None)
        if free is not None:
            return free
        self._rails.append(None)
        return len(self._rails) - 1


def _rail(target: str | None) -> str:
    return " " if target is None else "│"


def _connector(column: int, joined: set[int], opened: set[int], rails: list[str | None]) -> str:
    """The row below a task: connects it to the lines it joins or opens, and crosses the others."""
    ends = joined | opened
    leftmost, rightmost = min(ends | {column}), max(ends | {column})
    line = ""
    for index, target in enumerate(rails):
        if index == column or index in ends:
            sides = {"u"} if index == column or index in joined else set()
            sides |= {"d"} if index in ends else set()
            sides |= {"l"} if index > leftmost else set()
            sides |= {"r"} if index < rightmost else set()
            glyph = _GLYPHS[frozenset(sides)]
        else:
            glyph = "─" if target is None and leftmost < index < rightmost else _rail(target)
        line += glyph + ("─" if leftmost <= index < rightmost else " ")
    return line.rstrip()


_GLYPHS = {
    frozenset(sides): glyph
    for sides, glyph in {
        "ud": "│", "lr": "─", "ur": "╰", "ul": "╯", "dr": "╭", "dl": "╮",
        "udr": "├", "udl": "┤", "lrd": "┬", "lru": "┴", "udlr": "┼",
    }.items()
}  # fmt: skip


def _layers(links: dict[str, tuple[str, ...]]) -> list[list[str]]:
    """Tasks by their longest path from a root, each layer ordered to keep lines short."""
    depth: dict[str, int] = {}
    layers: list[list[str]] = []
    position: dict[str, float] = {}
    for name in in_topological_order(links):
        depth[name] = max((depth[above] + 1 for above in links[name]), default=0)
        if depth[name] == len(layers):
            layers.append([])
        layers[depth[name]].append(name)
    for layer in layers:
        centre = {name: _mean([position[above] for above in links[name]]) for name in layer}
        layer.sort(key=lambda name: centre[name])
        position.update({name: (index + 0.5) / len(layer) for index, name in enumerate(layer)})
    return layers


def _mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.5


def _boxes(layers: list[list[str]]) -> tuple[dict[str, tuple[float, float, float]], float, float]:
    """Left, top and width of each task, and the size of the picture."""
    rows = max(map(len, layers), default=0)
    height = rows * (_NODE_HEIGHT + _ROW_GAP) - _ROW_GAP + 2 * _MARGIN
    boxes = {}
    left = float(_MARGIN)
    for layer in layers:
        width = max(len(_label(name)) for name in layer) * _CHARACTER + 24
        top = (height - len(layer) * (_NODE_HEIGHT + _ROW_GAP) + _ROW_GAP) / 2
        for index, name in enumerate(layer):
            boxes[name] = (left, top + index * (_NODE_HEIGHT + _ROW_GAP), width)
        left += width + _LAYER_GAP
    return boxes, left - _LAYER_GAP + _MARGIN, height


_STYLE = (
    "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1f2933;text-anchor:middle;dominant-baseline:central}"
    "rect{fill:#f5f7fa;stroke:#52606d}path{fill:none;stroke:#7b8794;stroke-width:1.5}"
    "@media(prefers-color-scheme:dark){text{fill:#e4e7eb}rect{fill:#1f2933;stroke:#9aa5b1}}"
)


def _box(name: str, box: tuple[float, float, float], state: str | None) -> str:
    left, top, width = box
    group = f'<g class="{_escaped(state)}">' if state else "<g>"
    return (
        f'{group}<title>{_escaped(name)}</title><rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" '
        f'height="{_NODE_HEIGHT}" rx="6"/><text x="{left + width / 2:.1f}" y="{top + _NODE_HEIGHT / 2:.1f}">'
        f"{_escaped(_label(name))}</text></g>"
    )


def _edge(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    from_x, from_y = start[0] + start[2], start[1] + _NODE_HEIGHT / 2
    to_x, to_y = end[0], end[1] + _NODE_HEIGHT / 2
    bend = max((to_x - from_x) / 2, 20)
    return (
        f'<path d="M{from_x:.1f} {from_y:.1f}C{from_x + bend:.1f} {from_y:.1f} '
        f'{to_x - bend:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"/>'
    )


def _label(name: str) -> str:
    return name if len(name) <= _MAX_LABEL else name[: _MAX_LABEL - 1] + "…"


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
