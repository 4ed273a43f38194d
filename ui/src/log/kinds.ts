/** What a line is: an error, part of a traceback, or a line with a time. */

import { plain } from "./ansi.ts";

/** Lines that are errors. It is also what "errors only" searches for. */
export const ERROR_PATTERN = String.raw`\b(?:ERROR|CRITICAL|FATAL|Traceback \(most recent call last\))|^(?:\w+\.)*\w*(?:Error|Exception|Interrupt)\b(?::|$)|^(?:panic|fatal|error):|\blevel=(?:error|fatal)\b`;
const ERROR = new RegExp(ERROR_PATTERN);
const WARNING = /\bWARN(?:ING)?\b|\blevel=warn/;
const FRAME = /^\s*File "([^"]+)", line \d+/;
const LIBRARY = /[/\\](?:site-packages|dist-packages|lib[/\\]python\d[^/\\]*)[/\\]|^<frozen|[/\\]ork[/\\](?:worker|sdk)[/\\]/;

export function levelOf(line: string): "error" | "warning" | null {
  const shown = plain(line);
  return ERROR.test(shown) ? "error" : WARNING.test(shown) ? "warning" : null;
}

/** A run of lines in which frames of libraries stand; `last` is included. */
export interface Fold {
  first: number;
  last: number;
  frames: number;
}

/** Frames that are not the user's, in tracebacks of Python. The places count from `start`. */
export function foldsOf(lines: readonly string[], start = 0): Fold[] {
  const found: Fold[] = [];
  let open: Fold | null = null;
  let indent = 0;
  for (const [place, line] of lines.entries()) {
    const frame = FRAME.exec(line);
    if (frame) {
      indent = line.search(/\S/);
      if (!LIBRARY.test(frame[1] ?? "")) open = null;
      else if (open) open.frames += 1;
      else found.push((open = { first: start + place, last: start + place, frames: 1 }));
    } else if (open && !(line.search(/\S/) > indent)) open = null;
    if (open) open.last = start + place;
  }
  return found;
}

const TIME = /^\W{0,2}(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\s?(Z|[+-]\d\d:?\d\d|UTC)?/;

/** The time that a line begins with, in milliseconds; times without a zone are UTC. */
export function timeOf(line: string): number | null {
  const found = TIME.exec(line);
  if (!found) return null;
  const zone = !found[3] || found[3] === "UTC" ? "Z" : found[3];
  const time = Date.parse(`${found[1]}T${(found[2] ?? "").replace(",", ".")}${zone}`);
  return Number.isNaN(time) ? null : time;
}
