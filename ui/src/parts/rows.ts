/** Which rows of a long list are drawn, and where. */

/** Anything with a length and `at`: an array, or columns of 100,000 tasks. */
export interface Rows<T> {
  readonly length: number;
  at(place: number): T | undefined;
}

/** Browsers cut elements that are higher; a longer list is scaled to this. */
export const MAX_HEIGHT = 8_000_000;

export interface Window {
  first: number;
  /** Exclusive. */
  last: number;
  /** The distance of the first row from the top, in pixels. */
  offset: number;
  /** The height of all rows, in pixels. */
  height: number;
}

/** The rows that are seen at a scroll position, and `extra` rows before and after them. */
export function visibleRows(length: number, rowHeight: number, scrollTop: number, viewHeight: number, extra = 8): Window {
  const whole = length * rowHeight;
  const height = Math.min(whole, MAX_HEIGHT);
  const reach = Math.max(1, height - viewHeight);
  const share = Math.min(1, Math.max(0, scrollTop) / reach);
  // Without scaling this is scrollTop itself.
  const top = whole > MAX_HEIGHT ? share * (whole - viewHeight) : Math.min(Math.max(0, scrollTop), Math.max(0, whole - viewHeight));
  const first = Math.max(0, Math.floor(top / rowHeight) - extra);
  const last = Math.min(length, Math.ceil((top + viewHeight) / rowHeight) + extra);
  return { first, last, offset: first * rowHeight - top + Math.min(scrollTop, height - Math.min(viewHeight, height)), height };
}

/** The scroll position at which a row is seen, or null if it is seen already. */
export function scrollTo(place: number, length: number, rowHeight: number, scrollTop: number, viewHeight: number): number | null {
  const whole = length * rowHeight;
  const scale = whole > MAX_HEIGHT ? (MAX_HEIGHT - viewHeight) / (whole - viewHeight) : 1;
  const top = scrollTop / scale;
  if (place * rowHeight < top) return place * rowHeight * scale;
  if ((place + 1) * rowHeight > top + viewHeight) return ((place + 1) * rowHeight - viewHeight) * scale;
  return null;
}

/** The places of rows in another order, or only some of them. */
export class Picked<T> implements Rows<T> {
  readonly length: number;
  constructor(
    private readonly rows: Rows<T>,
    private readonly places: ArrayLike<number>,
  ) {
    this.length = places.length;
  }

  at(place: number): T | undefined {
    const at = this.places[place];
    return at === undefined ? undefined : this.rows.at(at);
  }
}
