/** One cell for each instance of a fan-out, in rows. */

import type { Columns } from "../data/columns.ts";
import { startOf } from "./groups.ts";

export interface Cells {
  /** Pixels from one cell to the next. */
  step: number;
  /** Pixels between two cells. */
  gap: number;
  perRow: number;
  rows: number;
}

export const LARGEST = 20;
export const SMALLEST = 2;

/** The largest cells with which all fit into a width and, if possible, a height. */
export function cellsFor(count: number, width: number, height: number): Cells {
  for (let step = LARGEST; step > SMALLEST; step -= 1) {
    const cells = cellsOf(count, width, step);
    if (cells.rows * step <= height) return cells;
  }
  return cellsOf(count, width, SMALLEST);
}

function cellsOf(count: number, width: number, step: number): Cells {
  const perRow = Math.max(1, Math.floor(width / step));
  return { step, gap: step >= 12 ? 2 : step >= 4 ? 1 : 0, perRow, rows: Math.max(1, Math.ceil(count / perRow)) };
}

export type MosaicOrder = "index" | "duration" | "start";

/** Places of instances by index, the longest first, or the first to start first. What has no time comes last. */
export function ordered(columns: Columns, places: Uint32Array, by: MosaicOrder): Uint32Array {
  if (by === "index") return places;
  const key = Float64Array.from(places, (place) => (by === "duration" ? -(columns.ran[place] ?? NaN) : startOf(columns, place)));
  const order = Uint32Array.from(places.keys());
  const value = (at: number): number => (Number.isNaN(key[at] ?? NaN) ? Infinity : (key[at] ?? 0));
  order.sort((a, b) => { const [x, y] = [value(a), value(b)]; return x < y ? -1 : x > y ? 1 : a - b; });
  return order.map((at) => places[at] ?? 0);
}
