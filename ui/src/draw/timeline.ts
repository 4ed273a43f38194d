/** Draws tasks on a time axis: what waited, what ran, and the path that decided when the run ended. */

import { type Columns, NONE } from "../data/columns.ts";
import { duration, grouped, lookOf, type StateKind, taskName } from "../words.ts";
import { Axis, fine, idleGaps, roundStep, tickLabel } from "./axis.ts";
import type { Drawing } from "./canvas.ts";
import { startOf, type TaskGroup } from "./groups.ts";
import type { Palette } from "./palette.ts";
import { drawGlyph, fitted, plain } from "./pen.ts";

export const ROW = 24;
export const RULER = 26;
const BAR = 12;

export const enum RowKind { task, fan, instance }

/** The rows from top to bottom: a task, a fan-out as a whole, or an instance below it. */
export interface TimelineRows {
  length: number;
  group: Uint32Array;
  place: Int32Array;
  kind: Uint8Array;
}

/** Fan-outs are one row unless they are in `open`. Without a filter, `keep` is null. */
export function timelineRows(groups: readonly TaskGroup[], open: ReadonlySet<string> | "all", keep: ((place: number) => boolean) | null): TimelineRows {
  const [group, place, kind]: [number[], number[], number[]] = [[], [], []];
  const add = (at: number, row: number, what: RowKind): void => { group.push(at); place.push(row); kind.push(what); };
  groups.forEach((each, at) => {
    if (each.instances.length === 0) {
      if (!keep || keep(each.own)) add(at, each.own, RowKind.task);
      return;
    }
    const instances = keep ? each.instances.filter(keep) : each.instances;
    if (instances.length === 0 && keep && !keep(each.own)) return;
    add(at, each.own, RowKind.fan);
    if (open === "all" || open.has(each.name)) for (const row of instances) add(at, row, RowKind.instance);
  });
  return { length: group.length, group: Uint32Array.from(group), place: Int32Array.from(place), kind: Uint8Array.from(kind) };
}

/** The axis of a run: from its start to its last end, or until now while it goes on. */
export function timelineAxis(columns: Columns, now: number | null): Axis {
  let [first, last] = [0, now ?? 0];
  const ends = new Float64Array(columns.length);
  for (let place = 0; place < columns.length; place += 1) {
    const queued = columns.queued[place] ?? NaN;
    if (Number.isNaN(queued)) { ends[place] = NaN; continue; }
    const end = lastTime(columns, place, now);
    ends[place] = end;
    if (queued < first) first = queued;
    if (end > last) last = end;
  }
  return new Axis(first, Math.max(last, first + 1), idleGaps(columns.queued, ends, first, last));
}

/** The end of a row, or what is known of it. */
function lastTime(columns: Columns, place: number, now: number | null): number {
  const [queued, wait, ran] = [columns.queued[place] ?? NaN, columns.wait[place] ?? NaN, columns.ran[place] ?? NaN];
  if (!Number.isNaN(ran)) return queued + wait + ran;
  return Math.max(queued + (Number.isNaN(wait) ? 0 : wait), now ?? 0);
}

/** Places of earlier attempts by task and index. */
export function earlierAttempts(earlier: Columns): Map<number, number[]> {
  const found = new Map<number, number[]>();
  for (let place = 0; place < earlier.length; place += 1) {
    const key = keyOf(earlier, place);
    const list = found.get(key);
    if (list) list.push(place);
    else found.set(key, [place]);
  }
  return found;
}

function keyOf(columns: Columns, place: number): number {
  return (columns.task[place] ?? 0) * 2 ** 31 + (columns.index[place] ?? NONE) + 1;
}

export interface Scene {
  columns: Columns;
  earlier: Columns;
  attempts: Map<number, number[]>;
  groups: readonly TaskGroup[];
  rows: TimelineRows;
  axis: Axis;
  /** The part of the axis that is shown. */
  from: number;
  to: number;
  /** The distance of the first row from the top of the rows, in pixels. */
  scrolled: number;
  /** Names of the critical path, first step first. */
  critical: readonly string[];
  /** Milliseconds from the run's start while it goes on. */
  now: number | null;
  selected: number;
  /** The row under the pointer or of the keyboard; NONE for none. */
  cursor: number;
  isOpen: (name: string) => boolean;
}

export function gutterOf(width: number): number {
  return Math.round(Math.min(230, Math.max(128, width * 0.24)));
}

const RIGHT = 14;

/** Pixels for a position on the axis. */
export function xOf(scene: Scene, width: number, position: number): number {
  const gutter = gutterOf(width);
  return gutter + ((position - scene.from) / (scene.to - scene.from)) * (width - gutter - RIGHT);
}

/** The position on the axis for pixels. */
export function positionOf(scene: Scene, width: number, x: number): number {
  const gutter = gutterOf(width);
  return scene.from + ((x - gutter) / (width - gutter - RIGHT)) * (scene.to - scene.from);
}

export function drawTimeline(pen: CanvasRenderingContext2D, drawing: Drawing, scene: Scene): void {
  const { width, height, palette } = drawing;
  const gutter = gutterOf(width);
  const first = Math.max(0, Math.floor(scene.scrolled / ROW));
  const last = Math.min(scene.rows.length, Math.ceil((scene.scrolled + height - RULER) / ROW));
  const kinds = scene.columns.statuses.map((status) => lookOf(status).kind);
  pen.textBaseline = "middle";
  pen.save();
  pen.beginPath();
  pen.rect(0, RULER, width, height - RULER);
  pen.clip();
  for (let row = first; row < last; row += 1) drawBack(pen, scene, palette, row, width);
  drawGrid(pen, drawing, scene, gutter);
  pen.save();
  pen.beginPath();
  pen.rect(gutter - 2, RULER, width - gutter + 2, height - RULER);
  pen.clip();
  for (let row = first; row < last; row += 1) {
    const y = yOf(scene, row);
    if (scene.rows.kind[row] === RowKind.fan) drawFan(pen, drawing, scene, kinds, row, y);
    else drawBar(pen, drawing, scene, kinds, row, y);
  }
  drawPath(pen, drawing, scene);
  drawNow(pen, drawing, scene);
  pen.restore();
  for (let row = first; row < last; row += 1) drawName(pen, scene, palette, kinds, row, gutter);
  pen.restore();
  drawRuler(pen, drawing, scene, gutter);
}

function yOf(scene: Scene, row: number): number {
  return RULER + row * ROW - scene.scrolled;
}

function drawBack(pen: CanvasRenderingContext2D, scene: Scene, palette: Palette, row: number, width: number): void {
  const isSelected = scene.selected !== NONE && scene.rows.place[row] === scene.selected;
  if (!isSelected && row !== scene.cursor) return;
  const y = yOf(scene, row);
  pen.fillStyle = isSelected ? palette.tintStrong : palette.tint;
  pen.fillRect(0, y, width, ROW);
  if (!isSelected) return;
  pen.fillStyle = palette.ink;
  pen.fillRect(0, y, 3, ROW);
}

function drawName(pen: CanvasRenderingContext2D, scene: Scene, palette: Palette, kinds: readonly StateKind[], row: number, gutter: number): void {
  const { rows, groups, columns } = scene;
  const group = groups[rows.group[row] ?? 0];
  if (!group) return;
  const y = yOf(scene, row);
  const kind = rows.kind[row];
  const place = rows.place[row] ?? NONE;
  const state = place === NONE ? "pending" : (kinds[columns.status[place] ?? 0] ?? "pending");
  const left = kind === RowKind.instance ? 28 : 12;
  drawGlyph(pen, state, left, y + 5.5, 13, palette);
  pen.font = `${kind === RowKind.instance ? 400 : 520} 12.5px ${palette.sans}`;
  pen.fillStyle = palette.ink;
  const name = plain(kind === RowKind.instance ? taskName(group.name, columns.index[place]) : group.name);
  const room = gutter - left - 30;
  if (kind !== RowKind.fan) {
    pen.fillText(fitted(pen, name, room + 10), left + 20, y + ROW / 2 + 0.5);
    return;
  }
  const size = `×${grouped(group.instances.length)}`;
  const sizeWidth = pen.measureText(size).width;
  const shown = fitted(pen, name, room - 12);
  pen.fillText(shown, left + 20, y + ROW / 2 + 0.5);
  pen.fillStyle = palette.dim;
  const shownWidth = pen.measureText(shown).width;
  if (shownWidth + sizeWidth + 6 <= room - 12) pen.fillText(size, left + 26 + shownWidth, y + ROW / 2 + 0.5);
  drawTriangle(pen, gutter - 18, y + ROW / 2, scene.isOpen(group.name), palette.dim);
}

function drawTriangle(pen: CanvasRenderingContext2D, x: number, y: number, isOpen: boolean, colour: string): void {
  pen.strokeStyle = colour;
  pen.lineWidth = 1.6;
  pen.beginPath();
  if (isOpen) { pen.moveTo(x - 4, y - 2); pen.lineTo(x, y + 2); pen.lineTo(x + 4, y - 2); }
  else { pen.moveTo(x - 2, y - 4); pen.lineTo(x + 2, y); pen.lineTo(x - 2, y + 4); }
  pen.stroke();
}

function drawBar(pen: CanvasRenderingContext2D, drawing: Drawing, scene: Scene, kinds: readonly StateKind[], row: number, y: number): void {
  const { columns } = scene;
  const place = scene.rows.place[row] ?? NONE;
  if (place === NONE) return;
  for (const attempt of scene.attempts.get(keyOf(columns, place)) ?? []) drawAttempt(pen, drawing, scene, scene.earlier, attempt, kinds, y, true);
  drawAttempt(pen, drawing, scene, columns, place, kinds, y, false);
}

/** One attempt: pale while it waited, then in the colour of its state. Earlier ones are lower. */
function drawAttempt(pen: CanvasRenderingContext2D, { width, palette }: Drawing, scene: Scene, from: Columns, place: number, kinds: readonly StateKind[], y: number, isEarlier: boolean): void {
  const queued = from.queued[place] ?? NaN;
  if (Number.isNaN(queued)) return;
  const kind = kinds[from.status[place] ?? 0] ?? "pending";
  const start = startOf(from, place);
  const end = isEarlier ? start + (from.ran[place] ?? 0) : lastTime(from, place, scene.now);
  const x = (time: number): number => xOf(scene, width, scene.axis.at(time));
  const [left, middle, right] = [x(queued), x(Number.isNaN(start) ? end : start), x(end)];
  if (right < 0 || left > width) return;
  const [top, high] = isEarlier ? [y + 9, BAR - 6] : [y + (ROW - BAR) / 2, BAR];
  drawWait(pen, palette, left, top, middle - left, high);
  if (Number.isNaN(start)) return;
  pen.fillStyle = palette.states[kind];
  pen.globalAlpha = kind === "success" ? 0.72 : isEarlier ? 0.8 : 1;
  rounded(pen, middle, top, Math.max(2, right - middle), high);
  pen.globalAlpha = 1;
  if (isEarlier) return;
  pen.font = `11px ${palette.sans}`;
  pen.fillStyle = palette.dim;
  const text = fine(end - start);
  if (right + 8 + pen.measureText(text).width < width) pen.fillText(text, right + 6, y + ROW / 2 + 0.5);
}

function drawWait(pen: CanvasRenderingContext2D, palette: Palette, x: number, y: number, width: number, height: number): void {
  if (width < 1) return;
  pen.fillStyle = palette.tintStrong;
  rounded(pen, x, y, width, height);
  pen.strokeStyle = palette.lineStrong;
  pen.lineWidth = 1;
  rounded(pen, x + 0.5, y + 0.5, Math.max(0.5, width - 1), height - 1, true);
}

function rounded(pen: CanvasRenderingContext2D, x: number, y: number, width: number, height: number, isLine = false): void {
  pen.beginPath();
  pen.roundRect(x, y, width, height, Math.min(2.5, width / 2, height / 2));
  if (isLine) pen.stroke();
  else pen.fill();
}

/** How many instances ran at each moment, as a profile, with marks where instances failed. */
function drawFan(pen: CanvasRenderingContext2D, { width, palette }: Drawing, scene: Scene, kinds: readonly StateKind[], row: number, y: number): void {
  const { columns } = scene;
  const group = scene.groups[scene.rows.group[row] ?? 0];
  if (!group) return;
  const gutter = gutterOf(width);
  // Without folded gaps a time is a straight way to its pixel, which counts with 100,000 instances.
  const first = xOf(scene, width, scene.axis.at(0)) - gutter;
  const perMs = xOf(scene, width, 1) - xOf(scene, width, 0);
  const x = scene.axis.gaps.length === 0 ? (time: number) => Math.round(first + time * perMs) : (time: number) => Math.round(xOf(scene, width, scene.axis.at(time)) - gutter);
  const profile = fanProfile(scene, group, kinds, Math.max(1, Math.ceil(width - gutter)), x);
  const low = y + ROW - 5;
  const scale = (ROW - 8) / Math.max(1, profile.most);
  pen.fillStyle = palette.tintStrong;
  for (let x = 0; x < profile.waiting.length; x += 1) if (profile.waiting[x] && !profile.running[x]) pen.fillRect(gutter + x, low - 4, 1, 4);
  const own = kinds[columns.status[group.own] ?? 0];
  pen.fillStyle = palette.states[own === "failed" || own === undefined ? "success" : own];
  pen.globalAlpha = own === "running" ? 1 : 0.72;
  for (let x = 0; x < profile.running.length; x += 1) {
    const number = profile.running[x] ?? 0;
    if (number > 0) pen.fillRect(gutter + x, low - Math.max(3, number * scale), 1, Math.max(3, number * scale));
  }
  pen.globalAlpha = 1;
  pen.fillStyle = palette.states.failed;
  for (let x = 0; x < profile.failed.length; x += 1) if (profile.failed[x]) pen.fillRect(gutter + x - 1, y + 3, 2, ROW - 7);
  if (profile.failures === 0) return;
  const text = `${grouped(profile.failures)} failed`;
  pen.font = `560 11px ${palette.sans}`;
  const right = Math.min(width - pen.measureText(text).width - 6, gutter + profile.end + 8);
  pen.fillStyle = palette.surface;
  pen.fillRect(right - 4, y + 4, pen.measureText(text).width + 8, ROW - 9);
  pen.fillStyle = palette.ink;
  pen.fillText(text, right, y + ROW / 2 + 0.5);
}

interface Profile {
  running: Int32Array;
  waiting: Int32Array;
  failed: Uint8Array;
  most: number;
  failures: number;
  /** The last pixel with something. */
  end: number;
}

function fanProfile(scene: Scene, group: TaskGroup, kinds: readonly StateKind[], pixels: number, x: (time: number) => number): Profile {
  const { columns } = scene;
  const [running, waiting, failed] = [new Int32Array(pixels + 1), new Int32Array(pixels + 1), new Uint8Array(pixels + 1)];
  const clip = (at: number): number => Math.max(0, Math.min(pixels, at));
  const span = (into: Int32Array, a: number, b: number): void => {
    if (b < 0 || a > pixels) return;
    into[clip(a)] = (into[clip(a)] ?? 0) + 1;
    const until = clip(Math.max(b, a + 1));
    into[until] = (into[until] ?? 0) - 1;
  };
  let [failures, end] = [0, 0];
  for (const place of group.instances) {
    const queued = columns.queued[place] ?? NaN;
    const isFailed = kinds[columns.status[place] ?? 0] === "failed";
    if (isFailed) failures += 1;
    if (Number.isNaN(queued)) continue;
    const start = startOf(columns, place);
    const right = x(lastTime(columns, place, scene.now));
    span(waiting, x(queued), Number.isNaN(start) ? right : x(start));
    if (!Number.isNaN(start)) span(running, x(start), right);
    if (isFailed && right >= 0 && right <= pixels) failed[right] = 1;
    if (right > end) end = clip(right);
  }
  let most = 0;
  for (let at = 1; at <= pixels; at += 1) {
    running[at] = (running[at] ?? 0) + (running[at - 1] ?? 0);
    waiting[at] = (waiting[at] ?? 0) + (waiting[at - 1] ?? 0);
  }
  for (const number of running) if (number > most) most = number;
  return { running, waiting, failed, most, failures, end };
}

/** A line below the bars of the critical path, from each step to the next. */
function drawPath(pen: CanvasRenderingContext2D, { width, palette }: Drawing, scene: Scene): void {
  if (scene.critical.length === 0) return;
  const rowOf = new Map<string, number>();
  const wanted = new Set(scene.critical);
  for (let row = 0; row < scene.rows.length; row += 1) {
    const name = scene.rows.kind[row] === RowKind.instance ? undefined : scene.groups[scene.rows.group[row] ?? 0]?.name;
    if (name !== undefined && wanted.has(name)) rowOf.set(name, row);
  }
  pen.strokeStyle = palette.ink;
  pen.lineWidth = 2;
  pen.lineJoin = "round";
  pen.beginPath();
  let isFirst = true;
  for (const [step, name] of scene.critical.entries()) {
    const row = rowOf.get(name);
    const place = row === undefined ? NONE : (scene.rows.place[row] ?? NONE);
    if (row === undefined || place === NONE) continue;
    const y = yOf(scene, row) + ROW - 3;
    const start = xOf(scene, width, scene.axis.at(startOf(scene.columns, place)));
    const end = xOf(scene, width, scene.axis.at(lastTime(scene.columns, place, scene.now)));
    if (isFirst) pen.moveTo(start, y);
    else pen.lineTo(start, y);
    pen.lineTo(end, y);
    isFirst = false;
    // Down to the row of the next step at the time at which this one ended.
    const next = rowOf.get(scene.critical[step + 1] ?? "");
    if (next !== undefined) pen.lineTo(end, yOf(scene, next) + ROW - 3);
  }
  pen.stroke();
}

function drawNow(pen: CanvasRenderingContext2D, { width, height, palette }: Drawing, scene: Scene): void {
  if (scene.now === null) return;
  const x = xOf(scene, width, scene.axis.at(scene.now));
  pen.strokeStyle = palette.states.running;
  pen.lineWidth = 1;
  pen.setLineDash([3, 3]);
  pen.beginPath();
  pen.moveTo(x, RULER);
  pen.lineTo(x, height);
  pen.stroke();
  pen.setLineDash([]);
}

function drawGrid(pen: CanvasRenderingContext2D, { width, height, palette }: Drawing, scene: Scene, gutter: number): void {
  pen.strokeStyle = palette.line;
  pen.lineWidth = 1;
  pen.beginPath();
  for (const tick of ticksOf(scene, width, gutter)) {
    const x = Math.round(xOf(scene, width, tick.at)) + 0.5;
    if (x < gutter) continue;
    pen.moveTo(x, RULER);
    pen.lineTo(x, height);
  }
  pen.stroke();
  for (const gap of scene.axis.gaps) {
    const left = Math.max(gutter, xOf(scene, width, scene.axis.at(gap.start)));
    const right = xOf(scene, width, scene.axis.at(gap.end));
    if (right <= left) continue;
    pen.fillStyle = palette.tint;
    pen.fillRect(left, RULER, right - left, height - RULER);
  }
}

function ticksOf(scene: Scene, width: number, gutter: number): ReturnType<Axis["ticks"]> {
  return scene.axis.ticks(scene.from, scene.to, (width - gutter) / 110);
}

function drawRuler(pen: CanvasRenderingContext2D, { width, palette }: Drawing, scene: Scene, gutter: number): void {
  pen.fillStyle = palette.surface;
  pen.fillRect(0, 0, width, RULER);
  pen.font = `11px ${palette.sans}`;
  const step = roundStep((scene.to - scene.from) / Math.max(1, (width - gutter) / 110));
  for (const gap of scene.axis.gaps) {
    const [left, right] = [xOf(scene, width, scene.axis.at(gap.start)), xOf(scene, width, scene.axis.at(gap.end))];
    if (right < gutter || left > width) continue;
    pen.fillStyle = palette.dim;
    const text = `⋯ ${duration((gap.end - gap.start) / 1000)} idle`;
    const wide = pen.measureText(text).width;
    pen.fillText(text, Math.max(gutter, Math.min(width - wide - 4, (left + right) / 2 - wide / 2)), RULER / 2);
  }
  pen.fillStyle = palette.dim;
  for (const tick of ticksOf(scene, width, gutter)) {
    const x = xOf(scene, width, tick.at);
    const isNearGap = scene.axis.gaps.some((gap) => Math.abs(x - xOf(scene, width, scene.axis.at((gap.start + gap.end) / 2))) < 64);
    if (x < gutter - 1 || (isNearGap && tick.time !== 0)) continue;
    const text = tickLabel(tick.time, step);
    if (x + pen.measureText(text).width + 4 < width) pen.fillText(text, x + 4, RULER / 2);
  }
  pen.strokeStyle = palette.line;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(0, RULER - 0.5);
  pen.lineTo(width, RULER - 0.5);
  pen.stroke();
}

/** Rows beyond this are left out of the overview: they are thinner than a pixel. Failures are always drawn. */
const MOST_ROWS = 2400;

/** All rows in a small picture, for moving about. */
export function drawOverview(pen: CanvasRenderingContext2D, { width, height, palette }: Drawing, scene: Scene, viewRows: number): void {
  const { rows, columns, axis } = scene;
  const gutter = gutterOf(width);
  const kinds = columns.statuses.map((status) => lookOf(status).kind);
  const x = (position: number): number => gutter + (position / axis.length) * (width - gutter - RIGHT);
  const step = Math.max(1, Math.ceil(rows.length / MOST_ROWS));
  const high = Math.max(1, height / Math.max(1, rows.length));
  const draw = (row: number): void => {
    const place = rows.place[row] ?? NONE;
    if (place === NONE) return;
    const [start, end] = [startOf(columns, place), lastTime(columns, place, scene.now)];
    if (Number.isNaN(start)) return;
    pen.fillStyle = palette.states[kinds[columns.status[place] ?? 0] ?? "pending"];
    const left = x(axis.at(start));
    pen.fillRect(left, (row / rows.length) * height, Math.max(1.5, x(axis.at(end)) - left), high);
  };
  pen.globalAlpha = 0.6;
  for (let row = 0; row < rows.length; row += step) draw(row);
  pen.globalAlpha = 1;
  for (let row = 0; row < rows.length; row += 1) {
    if (rows.kind[row] !== RowKind.fan && kinds[columns.status[rows.place[row] ?? 0] ?? 0] === "failed") draw(row);
  }
  const [left, right] = [x(scene.from), x(scene.to)];
  const top = (scene.scrolled / ROW / Math.max(1, rows.length)) * height;
  const size = Math.min(height - top, Math.max(6, (viewRows / Math.max(1, rows.length)) * height));
  pen.strokeStyle = palette.ink;
  pen.lineWidth = 1.5;
  pen.strokeRect(left + 0.75, Math.min(top, height - size) + 0.75, Math.max(4, right - left - 1.5), Math.max(4, size - 1.5));
}
