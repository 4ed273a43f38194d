/** The tasks of a graph as a tree: each below the last of the tasks it depends on. It has the selection of the graph. */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Graph } from "../api.d.ts";
import { NONE } from "../data/columns.ts";
import type { GraphNodeLook } from "../draw/graph.ts";
import { treeOf, visibleItems } from "../draw/tree.ts";
import { Icon } from "../parts/icons.tsx";
import { scrollTo, visibleRows } from "../parts/rows.ts";
import { State } from "../parts/state.tsx";
import { currentQuery } from "../router.ts";
import { grouped } from "../words.ts";
import { select } from "./model.ts";

const ROW = 28;
const DEEPEST = 5;

interface TreeProps {
  graph: Graph;
  looks: readonly GraphNodeLook[];
  known: { edges: { size: number; from: Uint32Array; to: Uint32Array } };
  selected: number;
}

export function TaskTree({ graph, looks, known, selected }: TreeProps): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 400 });
  const [closed, setClosed] = useState<ReadonlySet<number>>(new Set());
  const [cursor, setCursor] = useState(0);
  const tree = useMemo(() => treeOf(known.edges), [known]);
  const find = (currentQuery.value.get("find") ?? "").trim().toLowerCase();
  const state = currentQuery.value.get("state");
  const isFiltered = find !== "" || state !== null;
  const items = useMemo(() => {
    if (!isFiltered) return visibleItems(tree, closed);
    return visibleItems(tree, new Set()).filter((node) => looks[node]?.name.toLowerCase().includes(find) && (state === null || looks[node]?.kind === state || looks[node]?.counts.some(([kind]) => kind === state)));
  }, [tree, closed, find, state, looks]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element) return undefined;
    const measure = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => { observer.disconnect(); element.removeEventListener("scroll", measure); };
  }, []);
  const bring = (place: number): void => {
    const element = scroller.current;
    const to = element && scrollTo(place, items.length, ROW, element.scrollTop, element.clientHeight);
    if (element && to !== null && to !== undefined) element.scrollTop = to;
  };
  useEffect(() => {
    const place = selected === NONE ? -1 : items.indexOf(selected);
    if (place >= 0) { setCursor(place); bring(place); }
  }, [selected]);
  const focusOn = (place: number): void => {
    const next = Math.max(0, Math.min(items.length - 1, place));
    setCursor(next);
    bring(next);
    requestAnimationFrame(() => scroller.current?.querySelector<HTMLElement>(`[data-place="${next}"]`)?.focus({ preventScroll: true }));
  };
  const toggle = (node: number, isOpen: boolean): void => {
    const next = new Set(closed);
    if (isOpen) next.delete(node);
    else next.add(node);
    setClosed(next);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const node = items[cursor] ?? 0;
    const hasChildren = (tree.children[node]?.length ?? 0) > 0;
    const moves: Record<string, number> = { ArrowDown: cursor + 1, ArrowUp: cursor - 1, Home: 0, End: items.length - 1 };
    if (event.key in moves) focusOn(moves[event.key] ?? 0);
    else if (event.key === "ArrowRight" && hasChildren) (closed.has(node) ? toggle(node, true) : focusOn(cursor + 1));
    else if (event.key === "ArrowLeft") (hasChildren && !closed.has(node) ? toggle(node, false) : focusOn(Math.max(0, items.indexOf(tree.parent[node] ?? NONE))));
    else if (event.key === "Enter" || event.key === " ") select({ task: looks[node]?.name ?? "", index: null });
    else return;
    event.preventDefault();
  };
  const shown = visibleRows(items.length, ROW, view.top, view.height);
  const first = Math.min(cursor, Math.max(0, items.length - 1));
  return (
    <div class="tree" ref={scroller}>
      {items.length === 0 ? <p class="readout dim">No task matches.</p> : (
        <div class="tree-space" role="tree" aria-label="Tasks" style={{ height: `${shown.height}px` }} onKeyDown={onKeyDown}>
          {Array.from({ length: shown.last - shown.first }, (_, step) => {
            const place = shown.first + step;
            const node = items[place] ?? 0;
            const look = looks[node];
            if (!look) return null;
            const depth = isFiltered ? 0 : (tree.depth[node] ?? 0);
            const children = isFiltered ? 0 : (tree.children[node]?.length ?? 0);
            const others = (graph.nodes[node]?.depends_on.length ?? 0) - 1;
            return (
              <div
                class="tree-item"
                role="treeitem"
                key={node}
                data-place={place}
                aria-level={depth + 1}
                aria-posinset={(tree.position[node] ?? 0) + 1}
                aria-setsize={tree.siblings[node]}
                aria-expanded={children > 0 ? !closed.has(node) : undefined}
                aria-selected={node === selected}
                tabIndex={place === first || (first < shown.first && step === 0) ? 0 : -1}
                style={{ top: `${shown.offset + step * ROW}px`, paddingLeft: `${0.4 + Math.min(depth, DEEPEST) * 0.7}rem` }}
                onClick={() => select({ task: look.name, index: null })}
                onFocus={() => setCursor(place)}
                title={graph.nodes[node]?.depends_on.length ? `after ${graph.nodes[node]?.depends_on.slice(0, 12).join(", ")}` : undefined}
              >
                {children > 0 ? <span class="tree-fold" aria-hidden="true" onClick={(event) => { event.stopPropagation(); toggle(node, closed.has(node)); }}><Icon name={closed.has(node) ? "right" : "down"} /></span> : <span class="tree-fold" aria-hidden="true" />}
                <State of={look.kind} quiet />
                <span class="tree-name">{look.name}</span>
                {look.size > 0 && <span class="dim">×{grouped(look.size)}</span>}
                {others > 0 && <span class="dim tree-more">+{others}</span>}
              </div>
            );
          })}
        </div>
      )}
    </div>
  );
}
