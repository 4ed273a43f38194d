/** When did what run, and what decided the end? */

import type { JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { now } from "../clock.ts";
import { type Columns, NONE } from "../data/columns.ts";
import { fine } from "../draw/axis.ts";
import { useCanvas, useElement } from "../draw/canvas.ts";
import { drawOverview, drawTimeline, earlierAttempts, gutterOf, positionOf, ROW, RowKind, RULER, type Scene, timelineAxis, timelineRows } from "../draw/timeline.ts";
import { Empty } from "../parts/empty.tsx";
import { Choice } from "../parts/form.tsx";
import { announce } from "../parts/notice.tsx";
import { MAX_HEIGHT } from "../parts/rows.ts";
import { currentQuery, setQuery } from "../router.ts";
import { useShortcuts } from "../shortcuts.ts";
import { count, isFinal, lookOf, taskName } from "../words.ts";
import { filter, placeOfSelection, type RunTasks, select, selection, selectionAt } from "./model.ts";

interface TimelineProps {
  tasks: RunTasks;
  critical: readonly string[];
  clearFilters: () => void;
}

export function Timeline({ tasks, critical, clearFilters }: TimelineProps): JSX.Element {
  const scroller = useRef<HTMLDivElement>(null);
  const [cursor, setCursor] = useState(NONE);
  const [isActive, setActive] = useState(false);
  const query = currentQuery.value;
  const isFlat = query.get("group") === "none";
  const opened = query.getAll("open").join("\n");
  const filterKey = `${query.get("find") ?? ""}\n${query.get("state") ?? ""}`;
  const rows = useMemo(() => timelineRows(tasks.groups, isFlat ? "all" : new Set(opened.split("\n")), filter(tasks)), [tasks, isFlat, opened, filterKey]);
  const isRunning = !isFinal(tasks.status);
  const elapsed = isRunning ? now.value - tasks.start : null;
  const axis = useMemo(() => timelineAxis(tasks.tasks, elapsed), [tasks, elapsed]);
  const attempts = useMemo(() => earlierAttempts(tasks.earlier), [tasks]);
  const view = useZoom(axis.length, (time) => axis.at(time), (position) => axis.time(position));
  const selected = placeOfSelection(tasks, selection());
  const scrolled = useRef(0);
  const isOpen = (name: string): boolean => isFlat || opened.split("\n").includes(name);
  const scene = (): Scene => ({ columns: tasks.tasks, earlier: tasks.earlier, attempts, groups: tasks.groups, rows, axis, ...view.shown(), scrolled: scrolled.current, critical, now: elapsed, selected, cursor, isOpen });
  const { canvas, redraw } = useCanvas((pen, drawing) => drawTimeline(pen, drawing, scene()));
  const viewRows = useRef(10);
  const overview = useCanvas((pen, drawing) => drawOverview(pen, drawing, scene(), viewRows.current));
  const redrawAll = (): void => { redraw(); overview.redraw(); };
  view.onMove = redrawAll;

  const whole = rows.length * ROW;
  const onScroll = (): void => {
    const element = scroller.current;
    if (!element) return;
    const seen = element.clientHeight - RULER;
    viewRows.current = seen / ROW;
    const reach = Math.max(1, element.scrollHeight - element.clientHeight);
    scrolled.current = whole <= MAX_HEIGHT ? element.scrollTop : (element.scrollTop / reach) * (whole - seen);
    redrawAll();
  };
  useLayoutEffect(onScroll, [rows]);

  const show = (row: number): void => {
    const element = scroller.current;
    if (!element) return;
    const seen = element.clientHeight - RULER;
    const scale = whole <= MAX_HEIGHT ? 1 : (element.scrollHeight - element.clientHeight) / (whole - seen);
    if (row * ROW < scrolled.current) element.scrollTop = row * ROW * scale;
    else if ((row + 1) * ROW > scrolled.current + seen) element.scrollTop = ((row + 1) * ROW - seen) * scale;
  };
  useEffect(() => {
    const row = selected === NONE ? NONE : rows.place.indexOf(selected);
    if (row !== NONE) show(row);
  }, [selected]);

  const toggle = (row: number): void => {
    const name = tasks.groups[rows.group[row] ?? 0]?.name;
    if (!name || rows.kind[row] !== RowKind.fan || isFlat) return;
    const open = new Set(query.getAll("open"));
    if (!open.delete(name)) open.add(name);
    setQuery({ open: [...open] });
  };
  const openRow = (row: number): void => {
    const place = rows.place[row] ?? NONE;
    if (place !== NONE) select(selectionAt(tasks, place));
  };
  const at = (event: MouseEvent): { row: number; isToggle: boolean } => {
    const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const row = y < RULER ? NONE : Math.floor((y - RULER + scrolled.current) / ROW);
    const gutter = gutterOf(box.width);
    return { row: row < rows.length ? row : NONE, isToggle: x > gutter - 34 && x < gutter };
  };
  const drag = useDrag(view, scene);
  const onKeyDown = (event: KeyboardEvent): void => {
    const moves: Record<string, number> = { ArrowDown: cursor + 1, ArrowUp: cursor - 1, Home: 0, End: rows.length - 1, PageDown: cursor + 12, PageUp: cursor - 12 };
    const isFan = rows.kind[cursor] === RowKind.fan;
    if (event.key in moves) {
      const next = Math.max(0, Math.min(rows.length - 1, moves[event.key] ?? 0));
      setCursor(next);
      show(next);
      announce(describe(tasks, rows.place[next] ?? NONE, elapsed));
    } else if (event.key === "Enter") openRow(cursor);
    else if (event.key === "ArrowRight" && isFan && !isOpen(tasks.groups[rows.group[cursor] ?? 0]?.name ?? "")) toggle(cursor);
    else if (event.key === "ArrowLeft" && isFan && isOpen(tasks.groups[rows.group[cursor] ?? 0]?.name ?? "")) toggle(cursor);
    else return;
    event.preventDefault();
  };
  useZoomKeys(isActive, view);
  useWheel(canvas, (event, width) => {
    if (event.ctrlKey || event.metaKey) view.zoom(Math.exp(event.deltaY / 300), positionOf(scene(), width, event.offsetX));
    else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) view.pan((event.shiftKey ? event.deltaY : event.deltaX) / 800);
    else return false;
    return true;
  });
  if (rows.length === 0) {
    return tasks.groups.length === 0
      ? <Empty title="No task has a row yet" icon="schedules">The run has not started.</Empty>
      : <Empty title="No task matches" icon="filter" onClear={clearFilters} />;
  }
  const hovered = cursor === NONE ? NONE : (rows.place[cursor] ?? NONE);
  const hasMore = view.isZoomed || whole > 20 * ROW;
  return (
    <div class="timeline">
      <div class="draw-bar">
        <span class="legend"><i class="legend-wait" />waited<i class="legend-ran" />ran{critical.length > 0 && <><i class="legend-path" />critical path</>}</span>
        <span class="push" />
        {tasks.groups.some((group) => group.instances.length > 0) && (
          <Choice label="Group" value={isFlat ? "none" : "task"} options={[["task", "By task"], ["none", "All instances"]]} onChange={(value) => setQuery({ group: value === "none" ? "none" : null })} />
        )}
        <ZoomButtons view={view} />
      </div>
      <canvas class={`timeline-overview${hasMore ? "" : " is-unused"}${rows.length > 200 ? " is-high" : ""}`} ref={overview.canvas} aria-hidden="true" {...overviewDrag(view, axis.length, (share) => {
        const element = scroller.current;
        if (element) element.scrollTop = share * (element.scrollHeight - element.clientHeight);
      })} />
      <div class="timeline-scroll" ref={scroller} onScroll={onScroll} style={{ height: `${Math.min(whole, MAX_HEIGHT) + RULER + 2}px` }}>
        <div class="timeline-space" style={{ height: `${Math.min(whole, MAX_HEIGHT) + RULER}px` }}>
        <canvas
          class="timeline-canvas"
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-label={`Timeline of ${count(rows.length, "row")}. Arrow keys move, Enter opens. The table has the same rows.`}
          onKeyDown={onKeyDown}
          onFocus={() => { setActive(true); if (cursor === NONE) setCursor(0); }}
          onBlur={() => setActive(false)}
          onPointerEnter={() => setActive(true)}
          onPointerLeave={(event) => { setActive(document.activeElement === event.currentTarget); if (document.activeElement !== event.currentTarget) setCursor(NONE); }}
          onPointerDown={drag.start}
          onPointerMove={(event) => { if (!drag.move(event)) setCursor(at(event).row); }}
          onPointerUp={drag.end}
          onClick={(event) => {
            const { row, isToggle } = at(event);
            if (row === NONE || drag.moved()) return;
            if (isToggle && rows.kind[row] === RowKind.fan && !isFlat) toggle(row);
            else openRow(row);
          }}
          onDblClick={() => view.reset()}
        />
        </div>
      </div>
      <p class="readout">{hovered === NONE ? <span class="dim">Move over a row for its times · Ctrl and wheel, or w and s, zoom · a and d move</span> : describe(tasks, hovered, elapsed)}</p>
    </div>
  );
}

/** `load[417]: failed, waited 0.4s, ran 30.0s, attempt 3`. */
export function describe(tasks: RunTasks, place: number, elapsed: number | null): string {
  if (place === NONE) return "";
  const row = tasks.tasks.at(place);
  const parts = [`${taskName(row.name, row.index)}: ${lookOf(row.status).word}`];
  if (row.queued !== null) parts.push(`dispatched at ${fine(row.queued)}`);
  if (row.wait !== null && row.wait > 0) parts.push(`waited ${fine(row.wait)}`);
  const ran = row.ran ?? runningFor(tasks.tasks, place, elapsed);
  if (ran !== null) parts.push(`${row.ran === null ? "running for" : "ran"} ${fine(ran)}`);
  if (row.attempt > 1) parts.push(`attempt ${row.attempt}`);
  return parts.join(", ");
}

function runningFor(columns: Columns, place: number, elapsed: number | null): number | null {
  const start = (columns.queued[place] ?? NaN) + (columns.wait[place] ?? NaN);
  return elapsed === null || Number.isNaN(start) ? null : Math.max(0, elapsed - start);
}

const LEAST_MS = 5;

/** The part of the axis that is shown. It is in the address as `zoom=12.5-40`, in seconds from the run's start. */
class Zoom {
  length = 1;
  at: (time: number) => number = (time) => time;
  time: (position: number) => number = (position) => position;
  onMove: () => void = () => undefined;
  /** Positions; null shows everything. */
  range: [number, number] | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  get isZoomed(): boolean {
    return this.range !== null;
  }

  shown(): { from: number; to: number } {
    return this.range ? { from: this.range[0], to: this.range[1] } : { from: 0, to: this.length };
  }

  /** Zooms by a factor (below 1: in) around a position; default: the middle. */
  zoom(factor: number, around?: number): void {
    const { from, to } = this.shown();
    const middle = Math.min(this.length, Math.max(0, around ?? (from + to) / 2));
    const size = Math.min(this.length, Math.max(LEAST_MS, (to - from) * factor));
    const start = middle - ((middle - from) / (to - from)) * size;
    this.set(start, start + size);
  }

  /** Moves by a part of what is shown. */
  pan(share: number): void {
    const { from, to } = this.shown();
    const by = (to - from) * share;
    this.set(from + by, to + by);
  }

  reset(): void {
    this.set(0, this.length);
  }

  set(from: number, to: number): void {
    const size = Math.min(this.length, to - from);
    const start = Math.min(Math.max(0, from), this.length - size);
    this.range = size >= this.length * 0.999 ? null : [start, start + size];
    this.onMove();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => setQuery({ zoom: this.range && this.range.map((position) => (this.time(position) / 1000).toFixed(3)).join("-") }), 250);
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

function useZoom(length: number, at: (time: number) => number, time: (position: number) => number): Zoom {
  const zoom = useMemo(() => new Zoom(), []);
  useEffect(() => () => zoom.end(), []);
  Object.assign(zoom, { length, at, time });
  const text = currentQuery.value.get("zoom");
  useMemo(() => {
    const [from, to] = (text ?? "").split("-").map((part) => Number.parseFloat(part) * 1000);
    zoom.range = from !== undefined && to !== undefined && to > from ? [Math.max(0, at(from)), Math.min(length, at(to))] : null;
  }, [text]);
  return zoom;
}

function ZoomButtons({ view }: { view: Zoom }): JSX.Element {
  return (
    <span class="zoom-buttons">
      <button type="button" class="button small" aria-label="Zoom in" title="Zoom in (w)" onClick={() => view.zoom(0.6)}>+</button>
      <button type="button" class="button small" aria-label="Zoom out" title="Zoom out (s)" onClick={() => view.zoom(1 / 0.6)}>−</button>
      <button type="button" class="button small" onClick={() => view.reset()}>Whole</button>
    </span>
  );
}

/** w and s zoom, a and d move: only while the pointer or the focus is on the drawing, because `d` is the theme elsewhere. */
function useZoomKeys(isActive: boolean, view: Zoom): void {
  const group = "Timeline";
  useShortcuts(isActive ? [
    { keys: "w", does: "Zoom in", group, run: () => view.zoom(0.7) },
    { keys: "s", does: "Zoom out", group, run: () => view.zoom(1 / 0.7) },
    { keys: "a", does: "Earlier", group, run: () => view.pan(-0.2) },
    { keys: "d", does: "Later", group, run: () => view.pan(0.2) },
    { keys: "0", does: "Show everything", group, run: () => view.reset() },
  ] : []);
}

/** Listens to the wheel so that the page does not scroll if the function used it. */
export function useWheel(canvas: { current: HTMLCanvasElement | null }, use: (event: WheelEvent, width: number) => boolean): void {
  const latest = useRef(use);
  latest.current = use;
  useElement(canvas, (element) => {
    const listen = (event: WheelEvent): void => { if (latest.current(event, element.clientWidth)) event.preventDefault(); };
    element.addEventListener("wheel", listen, { passive: false });
    return () => element.removeEventListener("wheel", listen);
  });
}

interface Drag {
  start: (event: PointerEvent) => void;
  /** True while something is dragged. */
  move: (event: PointerEvent) => boolean;
  end: (event: PointerEvent) => void;
  /** Whether the pointer moved since it was pressed: then a click is no click. */
  moved: () => boolean;
}

function useDrag(view: Zoom, scene: () => Scene): Drag {
  const state = useRef<{ x: number; isDown: boolean; isMoved: boolean }>({ x: 0, isDown: false, isMoved: false });
  return {
    start: (event) => { if (event.pointerType !== "touch") state.current = { x: event.offsetX, isDown: true, isMoved: false }; },
    move: (event) => {
      const drag = state.current;
      if (!drag.isDown) return false;
      if (Math.abs(event.offsetX - drag.x) < 4 && !drag.isMoved) return true;
      drag.isMoved = true;
      const width = (event.currentTarget as HTMLElement).clientWidth;
      const { from, to } = scene();
      view.pan((positionOf(scene(), width, drag.x) - positionOf(scene(), width, event.offsetX)) / (to - from));
      drag.x = event.offsetX;
      return true;
    },
    end: () => { state.current.isDown = false; },
    moved: () => state.current.isMoved,
  };
}

/** A press in the overview moves there. */
function overviewDrag(view: Zoom, length: number, scrollTo: (share: number) => void): { onPointerDown: (event: PointerEvent) => void; onPointerMove: (event: PointerEvent) => void } {
  const move = (event: PointerEvent): void => {
    if (event.buttons !== 1) return;
    const element = event.currentTarget as HTMLCanvasElement;
    const gutter = gutterOf(element.clientWidth);
    const { from, to } = view.shown();
    const middle = ((event.offsetX - gutter) / (element.clientWidth - gutter)) * length;
    if (view.isZoomed) view.set(middle - (to - from) / 2, middle + (to - from) / 2);
    scrollTo(Math.min(1, Math.max(0, event.offsetY / element.clientHeight)));
  };
  return { onPointerDown: move, onPointerMove: move };
}
