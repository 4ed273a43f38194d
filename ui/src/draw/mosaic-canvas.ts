/** Draws the cells of a fan-out. */

import type { Columns } from "../data/columns.ts";
import { lookOf, type StateKind } from "../words.ts";
import type { Drawing } from "./canvas.ts";
import type { Cells } from "./mosaic.ts";
import { channels, type Palette } from "./palette.ts";

interface MosaicScene {
  tasks: Columns;
  places: Uint32Array;
  cells: Cells;
  /** Null keeps all; others are pale. */
  keep: ((place: number) => boolean) | null;
  chosen: number;
  cursor: number;
}

/** Cells of fewer pixels are written as pixels: 100,000 rectangles take too long. */
const PIXELS_BELOW = 5;
const PALE = 0.18;
/** Success is the usual state: it steps back so that others are seen. */
const USUAL = 0.55;

/** The drawn cells, which stay while only the cursor or the selection moves. */
export interface CellImage {
  of: readonly unknown[];
  image: HTMLCanvasElement;
}

/** Draws the cells and what is chosen. Give the returned image to the next call. */
export function drawMosaic(pen: CanvasRenderingContext2D, drawing: Drawing, scene: MosaicScene, before: CellImage | null): CellImage {
  const { canvas } = pen;
  const of = [scene.places, scene.tasks, scene.keep, drawing.palette, canvas.width, canvas.height, scene.cells.step];
  const isSame = before !== null && before.of.every((each, place) => each === of[place]);
  const image = isSame ? before.image : drawn(pen, drawing, scene);
  pen.drawImage(image, 0, 0, drawing.width, drawing.height);
  drawMarks(pen, drawing, scene);
  return { of, image };
}

function drawn(pen: CanvasRenderingContext2D, drawing: Drawing, scene: MosaicScene): HTMLCanvasElement {
  const image = document.createElement("canvas");
  [image.width, image.height] = [Math.max(1, pen.canvas.width), Math.max(1, pen.canvas.height)];
  const inner = image.getContext("2d");
  if (!inner) return image;
  inner.setTransform(pen.getTransform());
  if (scene.cells.step < PIXELS_BELOW) drawPixels(inner, drawing, scene);
  else drawCells(inner, drawing, scene);
  return image;
}

/** Frames around the cell of the pointer and the selected one. */
function drawMarks(pen: CanvasRenderingContext2D, drawing: Drawing, scene: MosaicScene): void {
  const { step, gap, perRow } = scene.cells;
  for (const [at, colour] of [[scene.cursor, drawing.palette.dim], [scene.chosen, drawing.palette.ink]] as const) {
    if (at < 0) continue;
    const [x, y] = [(at % perRow) * step, Math.floor(at / perRow) * step];
    const space = step < PIXELS_BELOW ? 3 : 1;
    pen.strokeStyle = colour;
    pen.lineWidth = 2;
    pen.strokeRect(x - space, y - space, step - gap + 2 * space, step - gap + 2 * space);
  }
}

function drawCells(pen: CanvasRenderingContext2D, { palette }: Drawing, { tasks, places, cells, keep }: MosaicScene): void {
  const kinds = tasks.statuses.map((status) => lookOf(status).kind);
  const { step, gap, perRow } = cells;
  const size = step - gap;
  places.forEach((place, at) => {
    const kind = kinds[tasks.status[place] ?? 0] ?? "pending";
    const [x, y] = [(at % perRow) * step, Math.floor(at / perRow) * step];
    pen.globalAlpha = strength(kind, keep, place);
    drawCell(pen, palette, kind, x, y, size);
  });
  pen.globalAlpha = 1;
}

/** A filled cell; what has not started is only a frame, and a large cell of a failure has a cross. */
function drawCell(pen: CanvasRenderingContext2D, palette: Palette, kind: StateKind, x: number, y: number, size: number): void {
  pen.fillStyle = pen.strokeStyle = palette.states[kind];
  pen.beginPath();
  if (kind === "pending" || kind === "skipped" || kind === "queued") {
    pen.lineWidth = 1;
    pen.roundRect(x + 0.5, y + 0.5, size - 1, size - 1, Math.min(3, size / 4));
    if (kind === "skipped") { pen.moveTo(x + 1, y + size - 1); pen.lineTo(x + size - 1, y + 1); }
    pen.stroke();
    return;
  }
  pen.roundRect(x, y, size, size, Math.min(3, size / 4));
  pen.fill();
  if (size < 9 || kind !== "failed") return;
  const inner = size * 0.3;
  pen.strokeStyle = palette.surface;
  pen.lineWidth = Math.max(1.2, size / 9);
  pen.beginPath();
  pen.moveTo(x + inner, y + inner);
  pen.lineTo(x + size - inner, y + size - inner);
  pen.moveTo(x + size - inner, y + inner);
  pen.lineTo(x + inner, y + size - inner);
  pen.stroke();
}

function strength(kind: StateKind, keep: MosaicScene["keep"], place: number): number {
  return (keep && !keep(place) ? PALE : 1) * (kind === "success" ? USUAL : 1);
}

function drawPixels(pen: CanvasRenderingContext2D, { palette, width, height }: Drawing, { tasks, places, cells, keep }: MosaicScene): void {
  const ratio = pen.getTransform().a;
  const kinds = tasks.statuses.map((status) => lookOf(status).kind);
  const colours = kinds.map((kind) => channels(palette.states[kind]));
  const image = pen.createImageData(Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio)));
  const words = new Uint32Array(image.data.buffer);
  const step = cells.step * ratio;
  const size = Math.max(1, Math.round((cells.step - cells.gap) * ratio));
  for (let at = 0; at < places.length; at += 1) {
    const place = places[at] ?? 0;
    const status = tasks.status[place] ?? 0;
    const [red, green, blue] = colours[status] ?? [0, 0, 0];
    const alpha = Math.round(255 * strength(kinds[status] ?? "pending", keep, place));
    const word = ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
    const [left, top] = [Math.round((at % cells.perRow) * step), Math.round(Math.floor(at / cells.perRow) * step)];
    for (let y = top; y < top + size && y < image.height; y += 1) words.fill(word, y * image.width + left, y * image.width + Math.min(image.width, left + size));
  }
  pen.putImageData(image, 0, 0);
  drawFailures(pen, palette, kinds, tasks, places, cells);
}

/** A failure in small cells is drawn larger than its cell, so that it is seen. */
function drawFailures(pen: CanvasRenderingContext2D, palette: Palette, kinds: readonly StateKind[], tasks: Columns, places: Uint32Array, { step, perRow }: Cells): void {
  const failed: number[] = [];
  for (let at = 0; at < places.length; at += 1) if (kinds[tasks.status[places[at] ?? 0] ?? 0] === "failed") failed.push(at);
  if (failed.length > places.length / 50) return;
  pen.fillStyle = palette.states.failed;
  for (const at of failed) pen.fillRect((at % perRow) * step - 1, Math.floor(at / perRow) * step - 1, step + 2, step + 2);
}
