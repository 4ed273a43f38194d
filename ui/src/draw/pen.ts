/** Small things that several drawings draw: state glyphs, text that is cut. */

import type { StateKind } from "../words.ts";
import type { Palette } from "./palette.ts";

const disc = "M8 1a7 7 0 1 0 0 14a7 7 0 1 0 0-14z";
const ring = "M8 1.8a6.2 6.2 0 1 0 0 12.4a6.2 6.2 0 1 0 0-12.4z";

/** The shapes of `parts/icons.tsx`: what is filled, what is cut out of it, what is a line. */
const GLYPHS: Record<StateKind, { fill?: string; cut?: string; line?: string; dash?: boolean }> = {
  success: { fill: disc, cut: "m4.9 8.3 2.2 2.2 4.1-4.6" },
  failed: { fill: disc, cut: "m5.6 5.6 4.8 4.8M10.4 5.6l-4.8 4.8" },
  running: { fill: disc, cut: "M6.5 5.1v5.8L11 8z" },
  queued: { line: `${ring}M8 4.6V8l2.2 1.5` },
  retrying: { line: "M13.6 8.6a5.7 5.7 0 1 1-1.3-4.3M13.2 1.7v3h-3" },
  skipped: { line: `${ring}M3.7 12.3 12.3 3.7` },
  pending: { line: ring, dash: true },
  cancelled: { fill: "M2 2h12v12h-12z" },
  paused: { line: `${ring}M6.4 5.6v4.8M9.6 5.6v4.8` },
  waiting: { line: `${ring}M6.5 6.6a1.5 1.5 0 1 1 2.2 1.3c-.5.3-.7.6-.7 1M8 11h.01` },
};

const paths = new Map<string, Path2D>();

function pathOf(text: string): Path2D {
  let found = paths.get(text);
  if (!found) paths.set(text, (found = new Path2D(text)));
  return found;
}

/** Draws the glyph of a state, `size` pixels wide, with its left upper corner at a point. */
export function drawGlyph(pen: CanvasRenderingContext2D, kind: StateKind, x: number, y: number, size: number, palette: Palette): void {
  const { fill, cut, line, dash } = GLYPHS[kind];
  pen.save();
  pen.translate(x, y);
  pen.scale(size / 16, size / 16);
  pen.lineWidth = 1.9;
  pen.lineCap = dash ? "butt" : "round";
  pen.lineJoin = "round";
  pen.fillStyle = pen.strokeStyle = palette.states[kind];
  if (fill) pen.fill(pathOf(fill));
  if (dash) pen.setLineDash([2.6, 2.27]);
  if (line) pen.stroke(pathOf(line));
  if (cut) {
    pen.strokeStyle = palette.surface;
    pen.stroke(pathOf(cut));
  }
  pen.restore();
}

const widths = new Map<string, number>();

/** Text that is cut with `…` so that it fits. The font has to be set before. */
export function fitted(pen: CanvasRenderingContext2D, text: string, width: number): string {
  const short = text.length > 300 ? text.slice(0, 300) : text;
  if (widthOf(pen, short) <= width) return short;
  let [low, high] = [0, short.length];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (pen.measureText(`${short.slice(0, middle)}…`).width <= width) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? "" : `${short.slice(0, low)}…`;
}

function widthOf(pen: CanvasRenderingContext2D, text: string): number {
  const key = `${pen.font}\n${text}`;
  let found = widths.get(key);
  if (found === undefined) {
    if (widths.size > 5000) widths.clear();
    widths.set(key, (found = pen.measureText(text).width));
  }
  return found;
}

/** Text of users may hold characters that turn the direction of what follows; a drawing shows them as nothing. */
export function plain(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, " ");
}
