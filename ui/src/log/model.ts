/** A log as lines of which any can be asked for. Only the lines around those that are shown are kept. */

import { signal } from "@preact/signals";
import { asProblem, isAbort, type Problem } from "../data/problem.ts";
import type { Source } from "../data/source.ts";
import { EventParser } from "../data/sse.ts";
import { type Fold, foldsOf } from "./kinds.ts";
import { type Line, Splitter } from "./lines.ts";
import { LOG, type LogKey } from "./search.ts";

const EVERY = 1000;
const TAIL = 64 * 1024;
const PIECE = 1 << 20;
const BLOCKS_KEPT = 40;
const ANSWER_SECONDS = 30;
const PAUSE_MS = 3000;

interface Block {
  lines: Line[];
  folds: Fold[];
}

export class LogModel {
  /** Changes whenever lines have arrived. */
  readonly changed = signal(0);
  /** How many lines there are; null until they are counted. */
  readonly lines = signal<number | null>(null);
  readonly size = signal<number | null>(null);
  readonly problem = signal<Problem | null>(null);
  /** The attempt still writes, and what it writes arrives here. */
  readonly isLive = signal(false);
  /** The last lines, before it is known which numbers they have. */
  tail: readonly Line[] = [];
  /** The first byte of the lines 0, 1000, 2000 … */
  #offsets: number[] = [0];
  /** The lines from the last of these offsets on. They are still growing. */
  #last = new Splitter(0);
  #lastLines: Line[] = [];
  readonly #blocks = new Map<number, Block>();
  readonly #awaited = new Set<number>();
  #failedAt = 0;
  readonly #end = new AbortController();
  readonly #source: Source;
  readonly key: LogKey;

  constructor(source: Source, key: LogKey) {
    this.#source = source;
    this.key = key;
  }

  close(): void {
    this.#end.abort();
  }

  /** After an error: reads what is missing. */
  again(): void {
    this.#failedAt = 0;
    this.problem.value = null;
    if (this.lines.value === null) void this.open();
    else this.#notify();
  }

  /** Reads the end, then counts the lines. A short log is read as a whole. */
  async open(): Promise<void> {
    try {
      const piece = await this.#source.bytes(LOG, this.key, -TAIL, undefined, this.#options());
      this.size.value = piece.size ?? piece.bytes.length;
      if (piece.start > 0) {
        this.tail = tailLines(piece.bytes, piece.start);
        this.#notify();
        await this.#count();
      } else this.#grow(piece.bytes);
      this.tail = [];
      this.#notify();
    } catch (error) {
      this.#onError(error);
    }
  }

  /** Reads on while the attempt runs. True if it has ended, false if the connection was lost before. */
  async follow(signal: AbortSignal): Promise<boolean> {
    this.isLive.value = true;
    try {
      const both = AbortSignal.any([signal, this.#end.signal]);
      const body = await this.#source.stream(LOG, { ...this.key, follow: "true" }, { "Last-Event-ID": String(this.#last.end) }, both);
      this.problem.value = null;
      return await this.#readEvents(body.getReader());
    } catch (error) {
      if (!signal.aborted) this.#onError(error);
      return false;
    } finally {
      this.isLive.value = false;
    }
  }

  /** The events hold text; lines are counted in bytes, which are read apart. */
  async #readEvents(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<boolean> {
    const parser = new EventParser();
    const decoder = new TextDecoder();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return false;
      for (const event of parser.push(decoder.decode(value, { stream: true }))) {
        if (Number(event.id ?? 0) > this.#last.end) await this.#readOn();
        if (event.event === "end") return true;
      }
    }
  }

  /** The line at a place, counted from 0, if it is at hand. If not, it is read. */
  at(place: number): Line | undefined {
    const block = Math.floor(place / EVERY);
    if (block === this.#offsets.length - 1) return this.#lastLines[place % EVERY];
    const found = this.#blocks.get(block);
    if (!found) void this.#load(block);
    return found?.lines[place % EVERY];
  }

  /** The frames of libraries that a line is among. */
  foldAt(place: number): Fold | undefined {
    const number = Math.floor(place / EVERY);
    const folds = number === this.#offsets.length - 1 ? this.#lastFolds() : this.#blocks.get(number)?.folds;
    return folds?.find((fold) => fold.first <= place && place <= fold.last);
  }

  /** The bytes from the start of one line to the end of another, both included. */
  async read(first: number, last: number, mostBytes: number): Promise<Uint8Array> {
    const [start, end] = [await this.#line(first), await this.#line(last)];
    if (!start || !end) return new Uint8Array();
    const piece = await this.#source.bytes(LOG, this.key, start.offset, Math.min(mostBytes, end.offset + end.length - start.offset), this.#options());
    return piece.bytes;
  }

  async piece(offset: number, length: number): Promise<Uint8Array> {
    return (await this.#source.bytes(LOG, this.key, offset, length, this.#options())).bytes;
  }

  async #line(place: number): Promise<Line | undefined> {
    const block = Math.floor(place / EVERY);
    if (block < this.#offsets.length - 1 && !this.#blocks.has(block)) await this.#load(block);
    return this.at(place);
  }

  /** By the server's index. If its time ran out, the rest is counted here. */
  async #count(): Promise<void> {
    const index = await this.#source.get(`${LOG}/lines`, { ...this.key, every: EVERY }, this.#options());
    this.#offsets = index.offsets.length ? [...index.offsets] : [0];
    this.#last = new Splitter(this.#offsets.at(-1) ?? 0);
    if (!index.is_complete) this.lines.value = index.lines;
    await this.#readOn();
  }

  async #readOn(): Promise<void> {
    for (;;) {
      const piece = await this.#source.bytes(LOG, this.key, this.#last.end, PIECE, this.#options());
      this.size.value = Math.max(piece.size ?? 0, this.#last.end + piece.bytes.length);
      if (piece.bytes.length) this.#grow(piece.bytes);
      if (this.#last.end >= (this.size.value ?? 0)) return;
    }
  }

  /** Takes the next bytes of the log. */
  #grow(bytes: Uint8Array): void {
    this.#dropRest();
    for (const line of this.#last.push(bytes)) {
      this.#lastLines.push(line);
      if (this.#lastLines.length === EVERY) this.#closeBlock(line.offset + line.length + 1);
    }
    const rest = this.#last.rest();
    if (rest) this.#lastLines.push(rest);
    this.#hasRest = rest !== null;
    this.lines.value = (this.#offsets.length - 1) * EVERY + this.#lastLines.length;
    this.#notify();
  }

  #hasRest = false;

  #dropRest(): void {
    if (this.#hasRest) this.#lastLines.pop();
    this.#hasRest = false;
  }

  #closeBlock(next: number): void {
    this.#keep(this.#offsets.length - 1, this.#lastLines);
    this.#lastLines = [];
    this.#offsets.push(next);
  }

  async #load(block: number): Promise<void> {
    if (this.#awaited.has(block) || Date.now() - this.#failedAt < PAUSE_MS) return;
    this.#awaited.add(block);
    try {
      const [start = 0, end = 0] = [this.#offsets[block], this.#offsets[block + 1]];
      const splitter = new Splitter(start);
      const lines: Line[] = [];
      while (splitter.end < end) {
        const piece = await this.#source.bytes(LOG, this.key, splitter.end, Math.min(PIECE, end - splitter.end), this.#options());
        if (!piece.bytes.length) break;
        lines.push(...splitter.push(piece.bytes));
      }
      this.#keep(block, lines);
      this.problem.value = null;
      this.#notify();
    } catch (error) {
      this.#failedAt = Date.now();
      this.#onError(error);
    } finally {
      this.#awaited.delete(block);
    }
  }

  #keep(block: number, lines: Line[]): void {
    this.#blocks.set(block, { lines, folds: foldsOf(lines.map((line) => line.text), block * EVERY) });
    for (const old of this.#blocks.keys()) {
      if (this.#blocks.size <= BLOCKS_KEPT) break;
      this.#blocks.delete(old);
    }
  }

  #folded: { lines: number; folds: Fold[] } = { lines: -1, folds: [] };

  #lastFolds(): Fold[] {
    if (this.#folded.lines !== this.#last.end) this.#folded = { lines: this.#last.end, folds: foldsOf(this.#lastLines.map((line) => line.text), (this.#offsets.length - 1) * EVERY) };
    return this.#folded.folds;
  }

  #options(): { signal: AbortSignal; seconds: number } {
    return { signal: this.#end.signal, seconds: ANSWER_SECONDS };
  }

  #onError(error: unknown): void {
    if (!this.#end.signal.aborted && !isAbort(error)) this.problem.value = asProblem(error);
  }

  #notify(): void {
    this.changed.value += 1;
  }
}

/** The lines of the end of a log; the first one may have begun before. */
function tailLines(bytes: Uint8Array, start: number): Line[] {
  const splitter = new Splitter(start);
  const lines = splitter.push(bytes);
  const rest = splitter.rest();
  if (rest) lines.push(rest);
  return lines.length > 1 ? lines.slice(1) : lines;
}
