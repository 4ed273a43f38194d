/** What depends on what, and where did it go wrong? */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Graph } from "../api.d.ts";
import { NONE } from "../data/columns.ts";
import type { Read } from "../data/read.ts";
import { useCanvas } from "../draw/canvas.ts";
import { edgesBetween, type Focus, focusOn, layersAmong, WHOLE_LIMIT } from "../draw/focus.ts";
import { type Camera, centredOn, drawGraph, drawMap, fitTo, type GraphNodeLook, type Hit, hitAt, nearestOnMap, type Picture, sizeOf, zoomed } from "../draw/graph.ts";
import { countsOf } from "../draw/groups.ts";
import { type Edges, type Layout, layersOf } from "../draw/layering.ts";
import { useLayout } from "../draw/layout.ts";
import { Empty } from "../parts/empty.tsx";
import { Choice } from "../parts/form.tsx";
import { announce } from "../parts/notice.tsx";
import { Loaded, Waiting } from "../parts/page.tsx";
import { currentQuery, setQuery } from "../router.ts";
import { useShortcuts } from "../shortcuts.ts";
import { count, grouped, lookOf, type StateKind } from "../words.ts";
import { type RunTasks, select, selection } from "./model.ts";
import { useWheel } from "./timeline.tsx";
import { TaskTree } from "./tree.tsx";

interface GraphProps {
  read: Read<Graph>;
  tasks: RunTasks;
  critical: readonly string[];
}

export function GraphView({ read, tasks, critical }: GraphProps): JSX.Element {
  return <Loaded read={read} what="the graph">{(graph) => (graph.nodes.length === 0 ? <Empty title="The workflow has no tasks" /> : <Contents graph={graph} tasks={tasks} critical={critical} />)}</Loaded>;
}

interface Known {
  names: readonly string[];
  places: ReadonlyMap<string, number>;
  edges: Edges;
  layer: Uint32Array;
}

function Contents({ graph, tasks, critical }: { graph: Graph; tasks: RunTasks; critical: readonly string[] }): JSX.Element {
  const known = useMemo(() => knownOf(graph), [graph]);
  const looks = useMemo(() => graph.nodes.map((node) => lookAt(tasks, node.name, node.status)), [graph, tasks]);
  const isLarge = known.edges.size > WHOLE_LIMIT;
  const isWhole = !isLarge || currentQuery.value.get("graph") === "whole";
  const focus = useFocus(known, looks, critical, isWhole);
  const edges = useMemo((): Edges => (focus ? partOf(known, focus) : known.edges), [known, focus]);
  const layout = useLayout(edges);
  const whole = useLayout(isLarge ? known.edges : null);
  const picture = useMemo(() => (layout ? pictureOf(looks, critical, edges, layout, focus) : null), [looks, critical, edges, layout, focus]);
  const selected = known.places.get(selection()?.task ?? "") ?? NONE;
  return (
    <div class="graph">
      <div class="draw-bar">
        {isLarge && <Choice label="Part of the graph" value={isWhole ? "whole" : "focus"} options={[["focus", "In focus"], ["whole", `All ${grouped(known.edges.size)}`]]} onChange={(value) => setQuery({ graph: value === "whole" ? "whole" : null })} />}
        <span class="dim">{focus ? `${count(focus.shown.length, "task")} of ${grouped(known.edges.size)}: failed and running, two steps around them, and the critical path` : count(known.edges.size, "task")}</span>
        <span class="push" />
        <span class="legend">{critical.length > 1 && <><i class="legend-path" />critical path</>}</span>
      </div>
      <div class="graph-body" style={{ "--want": `${wantedHeight(known.edges.size, layout)}px` }}>
        <TaskTree graph={graph} looks={looks} known={known} selected={selected} />
        <div class="graph-view">
          {picture ? <Picturing picture={picture} focus={focus} known={known} selected={selected} /> : <Waiting what="the layout" />}
          {isLarge && whole && !isWhole && <Minimap layout={whole} looks={looks} focus={focus} known={known} selected={selected} />}
        </div>
      </div>
    </div>
  );
}

/** Pixels for the tree and the picture; the page limits them. */
function wantedHeight(tasks: number, layout: Layout | undefined): number {
  return Math.max(tasks * 28 + 16, layout ? sizeOf(layout).height + 120 : 0);
}

function partOf({ edges, layer }: Known, { shown }: Focus): Edges {
  return { size: shown.length, ...edgesBetween(edges.size, edges.from, edges.to, shown), layer: layersAmong(layer, shown) };
}

function knownOf(graph: Graph): Known {
  const names = graph.nodes.map((node) => node.name);
  const places = new Map(names.map((name, place) => [name, place]));
  const [from, to]: [number[], number[]] = [[], []];
  graph.nodes.forEach((node, place) => {
    for (const name of node.depends_on) {
      const upstream = places.get(name);
      if (upstream !== undefined) { from.push(upstream); to.push(place); }
    }
  });
  const edges = { size: names.length, from: Uint32Array.from(from), to: Uint32Array.from(to) };
  return { names, places, edges, layer: layersOf(edges) };
}

const ORDER: readonly StateKind[] = ["failed", "running", "queued", "pending", "skipped", "cancelled", "success"];

/** The state of a task as the columns have it, which stay up to date. */
function lookAt(tasks: RunTasks, name: string, status: string | null): GraphNodeLook {
  const group = tasks.byName.get(name);
  const own = group && group.own !== NONE ? tasks.tasks.statuses[tasks.tasks.status[group.own] ?? 0] : status;
  const counts = group && group.instances.length > 0 ? [...countsOf(tasks.tasks, group.instances)].map(([key, number]) => [lookOf(key).kind, number] as const) : [];
  counts.sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b));
  return { name, kind: lookOf(own ?? "pending").kind, counts, size: group?.instances.length ?? 0 };
}

/** The tasks in focus. It changes when a task starts to run or fails, not with every change of a state. */
function useFocus(known: Known, looks: readonly GraphNodeLook[], critical: readonly string[], isWhole: boolean): Focus | null {
  const wanted = useMemo(() => {
    const of = (kind: StateKind): number[] => looks.flatMap((look, place) => (look.kind === kind ? [place] : []));
    const seeds = [...of("failed"), ...of("running"), ...of("queued"), ...of("retrying")];
    return seeds.length > 0 ? seeds : [0];
  }, [looks]);
  const picked = known.places.get(currentQuery.value.get("around") ?? "") ?? NONE;
  const opened = currentQuery.value.getAll("more").join("\n");
  const key = `${wanted.join()} ${picked} ${opened} ${critical.length}`;
  return useMemo(() => {
    if (isWhole) return null;
    const seeds = picked === NONE ? wanted : [picked, ...wanted];
    const places = (names: readonly string[]): number[] => names.flatMap((name) => known.places.get(name) ?? []);
    return focusOn(known.edges.size, known.edges.from, known.edges.to, seeds, places(critical), places(opened.split("\n")));
  }, [known, isWhole, key]);
}

function pictureOf(looks: readonly GraphNodeLook[], critical: readonly string[], edges: Edges, layout: Layout, focus: Focus | null): Picture {
  const step = new Map(critical.map((name, place) => [name, place + 1]));
  const nodes = focus ? Array.from(focus.shown, (node) => looks[node] as GraphNodeLook) : looks;
  const none = new Uint32Array(nodes.length);
  return { nodes, from: edges.from, to: edges.to, layout, hiddenUp: focus?.hiddenUp ?? none, hiddenDown: focus?.hiddenDown ?? none, critical: Uint32Array.from(nodes, (node) => step.get(node.name) ?? 0) };
}

/** Names at a smaller scale than this cannot be read: the picture then starts at what matters instead of showing all. */
const LEAST_SCALE = 0.55;

function Picturing({ picture, focus, known, selected }: { picture: Picture; focus: Focus | null; known: Known; selected: number }): JSX.Element {
  const camera = useRef<Camera | null>(null);
  const drag = useRef<{ x: number; y: number; isMoved: boolean } | null>(null);
  const [cursor, setCursor] = useState(NONE);
  const [isActive, setActive] = useState(false);
  const placeIn = (node: number): number => (node === NONE ? NONE : focus ? focus.shown.indexOf(node) : node);
  const shown = placeIn(selected);
  const first = useRef<Layout | null>(null);
  const { canvas, redraw } = useCanvas((pen, drawing) => {
    if (!camera.current || first.current !== picture.layout) {
      camera.current = firstCamera(picture, shown, drawing.width, drawing.height, camera.current !== null && first.current !== null ? camera.current : null);
      first.current = picture.layout;
    }
    drawGraph(pen, drawing, picture, camera.current, shown, cursor);
  });
  const change = (next: (camera: Camera, width: number, height: number) => Camera): void => {
    const element = canvas.current;
    if (!element || !camera.current) return;
    camera.current = next(camera.current, element.clientWidth, element.clientHeight);
    redraw();
  };
  useEffect(() => { if (shown !== NONE) change((now, width, height) => (isInView(picture, now, shown, width, height) ? now : centredOn(picture.layout, shown, Math.max(now.scale, LEAST_SCALE), width, height))); }, [shown]);
  const zoom = (factor: number): void => change((now, width, height) => zoomed(now, factor, width / 2, height / 2));
  const pan = (x: number, y: number): void => change((now, width, height) => ({ ...now, x: now.x + (x * width) / now.scale, y: now.y + (y * height) / now.scale }));
  const fit = (): void => change((_, width, height) => fitTo(picture.layout, width, height));
  const group = "Graph";
  useShortcuts(isActive ? [
    { keys: "w", does: "Zoom in", group, run: () => zoom(1.3) },
    { keys: "s", does: "Zoom out", group, run: () => zoom(1 / 1.3) },
    { keys: "a", does: "To the left", group, run: () => pan(-0.15, 0) },
    { keys: "d", does: "To the right", group, run: () => pan(0.15, 0) },
    { keys: "0", does: "Show everything", group, run: fit },
  ] : []);
  useWheel(canvas, (event) => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas.current) return false;
    change((now) => zoomed(now, Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY));
    return true;
  });
  const open = (hit: Hit): void => {
    const look = hit && picture.nodes[hit.node];
    if (!look) return;
    if (hit.part === "node") select({ task: look.name, index: null });
    else setQuery({ more: [...new Set([...currentQuery.value.getAll("more"), look.name])] });
  };
  const move = (next: number): void => {
    const look = picture.nodes[next];
    if (!look) return;
    setCursor(next);
    announce(`${look.name}: ${look.kind}${look.size ? `, ${count(look.size, "instance")}` : ""}`);
    change((now, width, height) => (isInView(picture, now, next, width, height) ? now : centredOn(picture.layout, next, now.scale, width, height)));
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const at = cursor === NONE ? Math.max(0, shown) : cursor;
    if (event.key === "Enter") open({ node: at, part: "node" });
    else if (event.key.startsWith("Arrow")) move(neighbour(picture, at, event.key));
    else return;
    event.preventDefault();
  };
  return (
    <>
      <canvas
        class="graph-canvas"
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label={`Graph of ${count(picture.nodes.length, "task")}${focus ? ` of ${grouped(known.edges.size)}` : ""}. Arrow keys move along dependencies, Enter opens. The list of tasks has the same tasks.`}
        onKeyDown={onKeyDown}
        onFocus={() => setActive(true)}
        onBlur={() => setActive(false)}
        onPointerEnter={() => setActive(true)}
        onPointerLeave={(event) => { setActive(document.activeElement === event.currentTarget); setCursor(NONE); }}
        onPointerDown={(event) => { drag.current = { x: event.clientX, y: event.clientY, isMoved: false }; event.currentTarget.setPointerCapture(event.pointerId); }}
        onPointerMove={(event) => {
          const from = drag.current;
          if (!from || event.buttons === 0) {
            const hit = camera.current && hitAt(picture, camera.current, event.offsetX, event.offsetY);
            event.currentTarget.style.cursor = hit ? "pointer" : "grab";
            setCursor(hit?.part === "node" ? hit.node : NONE);
            return;
          }
          const [x, y] = [event.clientX - from.x, event.clientY - from.y];
          if (!from.isMoved && Math.hypot(x, y) < 4) return;
          drag.current = { x: event.clientX, y: event.clientY, isMoved: true };
          change((now) => ({ ...now, x: now.x - x / now.scale, y: now.y - y / now.scale }));
        }}
        onClick={(event) => {
          if (!drag.current?.isMoved && camera.current) open(hitAt(picture, camera.current, event.offsetX, event.offsetY));
          drag.current = null;
        }}
        onDblClick={(event) => { if (camera.current && !hitAt(picture, camera.current, event.offsetX, event.offsetY)) fit(); }}
      />
      <span class="zoom-buttons graph-zoom">
        <button type="button" class="button small" aria-label="Zoom in" title="Zoom in (w)" onClick={() => zoom(1.4)}>+</button>
        <button type="button" class="button small" aria-label="Zoom out" title="Zoom out (s)" onClick={() => zoom(1 / 1.4)}>−</button>
        <button type="button" class="button small" onClick={fit}>Fit</button>
        {currentQuery.value.has("more") && <button type="button" class="button small" onClick={() => setQuery({ more: null })}>Fewer tasks</button>}
      </span>
    </>
  );
}

/** Everything if it can be read; else the selected, the first failed, the first running or the first task in the middle. */
function firstCamera(picture: Picture, shown: number, width: number, height: number, before: Camera | null): Camera {
  const fit = fitTo(picture.layout, width, height);
  if (fit.scale >= LEAST_SCALE) return fit;
  const of = (kind: StateKind): number => picture.nodes.findIndex((node) => node.kind === kind);
  const node = [shown, of("failed"), of("running"), 0].find((each) => each >= 0) ?? 0;
  if (picture.nodes.length > WHOLE_LIMIT * 2) return fit;
  return centredOn(picture.layout, node, before?.scale ?? 0.85, width, height);
}

function isInView({ layout }: Picture, camera: Camera, node: number, width: number, height: number): boolean {
  const at = centredOn(layout, node, camera.scale, width, height);
  return Math.abs(at.x - camera.x) * camera.scale < width / 2 - 60 && Math.abs(at.y - camera.y) * camera.scale < height / 2 - 30;
}

/** The node in the direction of an arrow key: along an edge, or the next in the same layer. */
function neighbour({ from, to, layout }: Picture, node: number, key: string): number {
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const [start, end] = key === "ArrowRight" ? [from, to] : [to, from];
    const edge = start.indexOf(node);
    return edge < 0 ? node : (end[edge] ?? node);
  }
  const sign = key === "ArrowDown" ? 1 : -1;
  let [best, distance] = [node, Infinity];
  for (let other = 0; other < layout.layer.length; other += 1) {
    const away = ((layout.row[other] ?? 0) - (layout.row[node] ?? 0)) * sign;
    if (layout.layer[other] === layout.layer[node] && away > 0 && away < distance) [best, distance] = [other, away];
  }
  return best;
}

/** The whole graph in a corner. A click brings what is there into focus. */
function Minimap({ layout, looks, focus, known, selected }: { layout: Layout; looks: readonly GraphNodeLook[]; focus: Focus | null; known: Known; selected: number }): JSX.Element {
  const isShown = useMemo(() => new Set(focus?.shown ?? []), [focus]);
  const kinds = useMemo(() => looks.map((look) => look.kind), [looks]);
  const { canvas } = useCanvas((pen, drawing) => drawMap(pen, drawing, { layout, kinds, isShown: (node) => isShown.has(node) }, selected));
  const onClick = (event: MouseEvent): void => {
    const element = event.currentTarget as HTMLCanvasElement;
    const node = nearestOnMap(layout, element.clientWidth, element.clientHeight, event.offsetX, event.offsetY);
    const name = known.names[node];
    if (name !== undefined) setQuery({ around: name, task: name, index: null });
  };
  return <canvas class="minimap" ref={canvas} role="img" aria-label={`All ${count(known.edges.size, "task")}, small`} title="All tasks. Click to look there." onClick={onClick} />;
}
