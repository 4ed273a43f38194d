/** Searches of a log: for a text by the server, for a regular expression in a worker of the page. */

import type { Reads } from "../api.d.ts";
import { asProblem, isAbort, type Problem } from "../data/problem.ts";
import type { Source } from "../data/source.ts";
import { newWorker } from "../data/worker.ts";
import type { Hit, ScanOptions } from "./scan.ts";
import type { FromScan, ToScan } from "./scan.worker.ts";

export const LOG = "/runs/{run}/tasks/{name}/{index}/attempts/{number}/log";
/** Which log: index 0 is also a task without instances. */
export type LogKey = Pick<Reads[typeof LOG]["given"], "run" | "name" | "index" | "number">;

export interface Query {
  text: string;
  isPattern: boolean;
  ignoreCase: boolean;
}

export interface Found {
  hits: readonly Hit[];
  /** All lines with a hit, of which the first are in `hits`. */
  total: number;
  /** False while it is searched, or if time ran out. */
  isComplete: boolean;
  isRunning: boolean;
  problem: Problem | null;
}

export const NOTHING: Found = { hits: [], total: 0, isComplete: true, isRunning: false, problem: null };
export const MOST_HITS = 10_000;
const ANSWER_SECONDS = 20;

/** Searches, and calls back with what is found so far. Ends with the signal. */
export async function search(source: Source, log: LogKey, query: Query, signal: AbortSignal, onFound: (found: Found) => void): Promise<void> {
  onFound({ ...NOTHING, isComplete: false, isRunning: true });
  try {
    if (query.isPattern) await scan(source, log, { pattern: query.text, flags: query.ignoreCase ? "i" : "", most: MOST_HITS }, signal, onFound);
    else {
      const found = await source.get(`${LOG}/search`, { ...log, q: query.text, ignore_case: query.ignoreCase, limit: MOST_HITS }, { signal, seconds: ANSWER_SECONDS });
      onFound({ hits: found.hits, total: found.total, isComplete: found.is_complete, isRunning: false, problem: null });
    }
  } catch (error) {
    if (!signal.aborted && !isAbort(error)) onFound({ ...NOTHING, isComplete: false, problem: asProblem(error) });
  }
}

/** Pieces on their way to the worker. */
const AHEAD = 16;

/** One pass over the whole log. */
export async function scan(source: Source, log: LogKey, options: ScanOptions, signal: AbortSignal, onFound: (found: Found) => void): Promise<void> {
  new RegExp(options.pattern, options.flags); // throws here, not in the worker
  const hits: Hit[] = [];
  const worker = newWorker("scan");
  signal.addEventListener("abort", () => worker.terminate(), { once: true });
  let under = 0;
  let wake: (() => void) | null = null;
  const ended = new Promise<void>((resolve, reject) => {
    signal.addEventListener("abort", () => reject(new DOMException("", "AbortError")), { once: true });
    worker.addEventListener("error", () => reject(new Error("The search has failed.")));
    worker.addEventListener("message", ({ data }: MessageEvent<FromScan>) => {
      under -= 1;
      wake?.();
      hits.push(...data.hits);
      if (data.hits.length || data.isEnd) onFound({ hits: data.isEnd ? [...hits] : hits, total: data.total, isComplete: data.isEnd, isRunning: !data.isEnd, problem: null });
      if (data.isEnd) resolve();
    });
  });
  ended.catch(() => undefined);
  const send = (message: ToScan, transfer: Transferable[] = []): void => worker.postMessage(message, transfer);
  try {
    send({ kind: "start", options });
    const reader = (await source.stream(LOG, log, undefined, signal)).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      under += 1;
      send({ kind: "bytes", bytes: value }, value.byteLength === value.buffer.byteLength ? [value.buffer] : []);
      if (under > AHEAD) await Promise.race([ended, new Promise<void>((resolve) => { wake = resolve; })]);
    }
    send({ kind: "end" });
    await ended;
  } finally {
    worker.terminate();
  }
}

/** Where a text is in another: pairs of first character and the one after the last. */
export function placesOf(query: Query, text: string): [number, number][] {
  const [wanted, within] = query.ignoreCase ? [query.text.toLowerCase(), text.toLowerCase()] : [query.text, text];
  const found: [number, number][] = [];
  if (wanted === "" || within.length !== text.length) return found;
  for (let at = within.indexOf(wanted); at >= 0 && found.length < 100; at = within.indexOf(wanted, at + wanted.length)) found.push([at, at + wanted.length]);
  return found;
}
