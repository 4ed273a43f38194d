/** Bytes as lines. Of a very long line only the beginning is kept. */

/** `offset` and `length` are bytes of the log; the line break does not count. */
export interface Line {
  offset: number;
  length: number;
  /** The beginning of the line, at most `KEPT` bytes of it. */
  text: string;
}

/** Bytes of a line that are kept. */
export const KEPT = 4096;
const BREAK = 10;

/** Takes bytes as they come and gives the lines that are complete. */
export class Splitter {
  #head = new Uint8Array(KEPT);
  #kept = 0;
  #start: number;
  #length = 0;
  readonly #decoder = new TextDecoder();

  constructor(offset: number) {
    this.#start = offset;
  }

  /** The byte after the last one taken. */
  get end(): number {
    return this.#start + this.#length;
  }

  push(bytes: Uint8Array): Line[] {
    const found: Line[] = [];
    let at = 0;
    for (;;) {
      const next = bytes.indexOf(BREAK, at);
      const part = bytes.subarray(at, next < 0 ? bytes.length : next);
      if (next >= 0 && this.#length === 0) found.push(this.#line(part.subarray(0, KEPT), part.length));
      else this.#add(part);
      if (next < 0) return found;
      if (this.#length > 0) found.push(this.#line(this.#head.subarray(0, this.#kept), this.#length));
      const { offset, length } = found.at(-1) as Line;
      this.#start = offset + length + 1;
      this.#kept = this.#length = 0;
      at = next + 1;
    }
  }

  /** The last line as it is now, if it has no line break yet. */
  rest(): Line | null {
    return this.#length === 0 ? null : this.#line(this.#head.subarray(0, this.#kept), this.#length);
  }

  #add(part: Uint8Array): void {
    const fits = part.subarray(0, KEPT - this.#kept);
    this.#head.set(fits, this.#kept);
    this.#kept += fits.length;
    this.#length += part.length;
  }

  #line(head: Uint8Array, length: number): Line {
    const text = this.#decoder.decode(head);
    // A character that was cut in two.
    return { offset: this.#start, length, text: length > head.length ? text.replace(/\ufffd+$/, "") : text };
  }
}

/** Lines that the address names: `L212` and `L212-L219`, counted from 1. */
export function linesOfHash(hash: string): { first: number; last: number } | null {
  const found = /^L(\d{1,12})(?:-L?(\d{1,12}))?$/.exec(hash);
  if (!found) return null;
  const [a, b] = [Number(found[1]), Number(found[2] ?? found[1])];
  return a < 1 || b < 1 ? null : { first: Math.min(a, b), last: Math.max(a, b) };
}

export function hashOfLines(first: number, last = first): string {
  return first === last ? `L${first}` : `L${Math.min(first, last)}-L${Math.max(first, last)}`;
}
