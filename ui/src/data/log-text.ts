/** Lines of a log that is in memory: the index and the literal search that the API gives for logs of a server. */

import type { LogLines, LogSearch } from "../api.d.ts";

const NEWLINE = 10;
const SHOWN = 1000;

/** The byte offsets of the lines 1, 1 + every, 1 + 2 * every … */
export function indexLines(log: Uint8Array, every: number): LogLines {
  const offsets = [0];
  let lines = 0;
  for (const { start } of linesOf(log)) {
    if (lines > 0 && lines % every === 0) offsets.push(start);
    lines += 1;
  }
  return { offsets, lines, size: log.length, every, is_complete: true };
}

/** The first lines that have the text, and the number of all of them. Lines count from 1. */
export function searchLog(log: Uint8Array, wanted: string, ignoreCase: boolean, limit: number): LogSearch {
  const fold = (text: string): string => (ignoreCase ? text.toLowerCase() : text);
  const decoder = new TextDecoder();
  const hits: LogSearch["hits"] = [];
  let total = 0;
  let line = 0;
  for (const { start, end } of linesOf(log)) {
    line += 1;
    const text = decoder.decode(log.subarray(start, end));
    if (!fold(text).includes(fold(wanted))) continue;
    total += 1;
    if (hits.length < limit) hits.push({ line, offset: start, text: text.slice(0, SHOWN) });
  }
  return { hits, total, searched: log.length, is_complete: true };
}

function* linesOf(log: Uint8Array): Generator<{ start: number; end: number }> {
  for (let start = 0; start < log.length; ) {
    const found = log.indexOf(NEWLINE, start);
    const end = found < 0 ? log.length : found;
    yield { start, end };
    start = end + 1;
  }
}
