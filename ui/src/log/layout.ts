/** Where rows are in a box that scrolls. */

import { MAX_HEIGHT } from "../parts/rows.ts";

/** A row, as a number with a part of it, is at `y` pixels below the top of the box. */
export interface Anchor {
  place: number;
  y: number;
}

/** Rows that are shown as one; `last` is included. */
export interface Range {
  first: number;
  last: number;
}

export interface Space {
  /** The height of what scrolls. */
  height: number;
  /** The largest scroll position. */
  reach: number;
  /** A pixel of the scroll bar is more than one of the rows: browsers cut elements that are too high. */
  isScaled: boolean;
}

const EXTRA = 240;

export function spaceOf(count: number, rowHeight: number, viewHeight: number): Space {
  const whole = count * rowHeight;
  const height = Math.max(viewHeight, Math.min(whole, MAX_HEIGHT));
  return { height, reach: height - viewHeight, isScaled: whole > MAX_HEIGHT };
}

export function moved(from: Anchor, pixels: number): Anchor {
  return { place: from.place, y: from.y - pixels };
}

/** The share of the way from the first to the last position at which a row is the first that is seen. */
export function shareOf(top: Anchor, height: number, count: number, rowsSeen: number): number {
  const first = top.place + (height > 0 ? Math.max(0, -top.y) / height : 0);
  return Math.min(1, Math.max(0, first / Math.max(1, count - rowsSeen)));
}

/** The rows to lay out around an anchor, in order; a fold stands as its first row. */
export function placesAround(anchor: Anchor, count: number, viewHeight: number, rowHeight: number, fold: (place: number) => Range | undefined): number[] {
  if (count <= 0) return [];
  const at = Math.min(count - 1, Math.max(0, Math.floor(anchor.place)));
  const start = fold(at)?.first ?? at;
  const below = Math.ceil((viewHeight - anchor.y + EXTRA) / rowHeight) + 1;
  const above = Math.ceil((anchor.y + EXTRA) / rowHeight) + 1;
  const found: number[] = [];
  // At the end of the list the rows above it fill the box, and at its beginning those below.
  const most = Math.ceil((viewHeight + 2 * EXTRA) / rowHeight) + 2;
  let place = start;
  for (let rows = 0; place < count && rows < Math.max(below, most); rows += 1) {
    found.push(place);
    place = (fold(place)?.last ?? place) + 1;
  }
  place = start - 1;
  const before: number[] = [];
  for (let rows = 0; place >= 0 && rows < Math.max(above, found.length < most ? most - found.length : 0); rows += 1) {
    place = fold(place)?.first ?? place;
    before.push(place);
    place -= 1;
  }
  return [...before.reverse(), ...found];
}
