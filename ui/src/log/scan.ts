/** Searches bytes for lines that match a regular expression, in one pass that keeps nothing but hits. */

import { plain } from "./ansi.ts";

/** Lines count from 1. */
export interface Hit {
  line: number;
  text: string;
  /** The first match of a pattern: its first character, and the one after its last. */
  at?: [number, number];
}

export interface ScanOptions {
  pattern: string;
  flags: string;
  /** Hits beyond this number are counted only. */
  most: number;
}

const SHOWN = 400;
/** A longer line is searched in parts. */
const LONGEST = 4 << 20;
const BREAK = 10;

export class Scanner {
  readonly #regex: RegExp;
  readonly #most: number;
  #rest: Uint8Array[] = [];
  #restLength = 0;
  #lastHit = 0;
  line = 1;
  total = 0;
  #kept = 0;

  constructor({ pattern, flags, most }: ScanOptions) {
    this.#regex = new RegExp(pattern, flags.replace("g", ""));
    this.#most = most;
  }

  /** New hits. */
  push(bytes: Uint8Array): Hit[] {
    const end = bytes.lastIndexOf(BREAK) + 1;
    const found: Hit[] = [];
    if (end > 0) {
      this.#search(this.#join(bytes.subarray(0, end)), found);
      this.#keep(bytes.subarray(end));
    } else {
      this.#keep(bytes, true);
      if (this.#restLength > LONGEST) this.#searchLine(decode(this.#join(new Uint8Array())), found);
    }
    return found;
  }

  end(): Hit[] {
    const found: Hit[] = [];
    const rest = this.#join(new Uint8Array());
    if (rest.length) this.#searchLine(decode(rest), found);
    return found;
  }

  #keep(bytes: Uint8Array, more = false): void {
    if (!more) [this.#rest, this.#restLength] = [[], 0];
    if (!bytes.length) return;
    this.#rest.push(bytes.slice());
    this.#restLength += bytes.length;
  }

  #join(bytes: Uint8Array): Uint8Array {
    if (this.#restLength === 0) return bytes;
    const joined = new Uint8Array(this.#restLength + bytes.length);
    let at = 0;
    for (const part of [...this.#rest, bytes]) {
      joined.set(part, at);
      at += part.length;
    }
    [this.#rest, this.#restLength] = [[], 0];
    return joined;
  }

  /** Bytes that end with a line break. */
  #search(bytes: Uint8Array, found: Hit[]): void {
    const lines = decode(bytes).split("\n");
    for (let place = 0; place < lines.length - 1; place += 1) {
      this.#searchLine(lines[place] ?? "", found);
      this.line += 1;
    }
  }

  #searchLine(raw: string, found: Hit[]): void {
    const line = plain(raw);
    if (this.line === this.#lastHit || !this.#regex.test(line)) return;
    this.#lastHit = this.line;
    this.total += 1;
    if (this.#kept >= this.#most) return;
    this.#kept += 1;
    const match = this.#regex.exec(line);
    found.push({ line: this.line, text: line.slice(0, SHOWN), ...(match ? { at: [match.index, match.index + match[0].length] } : {}) });
  }
}

const decoder = new TextDecoder();

function decode(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}
