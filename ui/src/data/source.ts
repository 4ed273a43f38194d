/** What pages read and do. `HttpSource` asks the server; a snapshot can stand in its place. */

import type { Reads, Writes } from "../api.d.ts";

export type ReadPath = keyof Reads;
export type WriteCall = keyof Writes;
export type Given<P extends ReadPath> = Reads[P]["given"];
export type Answer<P extends ReadPath> = Reads[P]["answer"];
export type BodyOf<C extends WriteCall> = Writes[C] extends { body: infer B } ? B : undefined;

export interface ReadOptions {
  signal?: AbortSignal;
  /** Seconds without an answer after which the read fails; default 10. */
  seconds?: number;
}

/** A piece of a log or an output. `size` is that of the whole, if the server said it. */
export interface Piece {
  bytes: Uint8Array;
  start: number;
  size: number | null;
}

export interface Source {
  /** False for a snapshot: then pages show no actions. */
  readonly canAct: boolean;
  /** The time of a snapshot; null for a server. */
  readonly asOf: string | null;
  /** A GET of the API: `get("/runs/{run}/summary", { run })`. */
  get<P extends ReadPath>(path: P, given: Given<P>, options?: ReadOptions): Promise<Answer<P>>;
  /** Any other method: `act("POST /runs/{run}/retry", { run }, {})`. */
  act<C extends WriteCall>(call: C, given: Writes[C]["given"], body?: BodyOf<C>, options?: ReadOptions): Promise<Writes[C]["answer"]>;
  /** Bytes of a log or output. A negative start counts from the end. */
  bytes<P extends ReadPath>(path: P, given: Given<P>, start: number, length?: number, options?: ReadOptions): Promise<Piece>;
  /** A response whose body is read as it comes: events, a followed log. */
  stream<P extends ReadPath>(path: P, given: Given<P>, headers?: Record<string, string>, signal?: AbortSignal): Promise<ReadableStream<Uint8Array>>;
}

/** `/runs/{run}/tasks` with `{ run: "7f3k", limit: 5 }` → `/runs/7f3k/tasks?limit=5`. */
export function address(path: string, given: Readonly<Record<string, unknown>>): string {
  const rest = new Map(Object.entries(given));
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = rest.get(name);
    rest.delete(name);
    if (value === undefined || value === null) throw new TypeError(`${path} needs ${name}`);
    return encodeURIComponent(String(value));
  });
  const query = new URLSearchParams();
  for (const [key, value] of rest) {
    for (const each of Array.isArray(value) ? value : [value]) {
      if (each !== undefined && each !== null) query.append(key, String(each));
    }
  }
  const text = query.toString();
  return text ? `${filled}?${text}` : filled;
}
