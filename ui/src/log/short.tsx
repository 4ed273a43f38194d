/** A few lines of a log, around its first error or at its end. */

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useLoad } from "../data/read.ts";
import type { Source } from "../data/source.ts";
import { Empty } from "../parts/empty.tsx";
import { Loaded } from "../parts/page.tsx";
import { href, path } from "../router.ts";
import { isOfRun, type TaskId } from "../task/model.ts";
import { bytes } from "../words.ts";
import { levelOf } from "./kinds.ts";
import { type Line, Splitter } from "./lines.ts";
import { Row } from "./row.tsx";
import { LOG, type LogKey } from "./search.ts";

const SMALL = 256 * 1024;
const PART = 32 * 1024;
const BEFORE = 4 * 1024;
const MOST_LINES = 400;
/** What errors begin with, in the order in which they are looked for. */
const WORDS = ["Traceback (most recent call last)", "ERROR", "FATAL"];

interface ShortLogProps {
  id: TaskId;
  attempt: number | undefined;
  /** Of the attempt: a running one is read again as its run changes. */
  status: string | undefined;
}

interface Part {
  lines: Line[];
  /** The number of the first line; null if it is not known. */
  first: number | null;
  /** The place of the first error in `lines`. */
  error: number | null;
  size: number;
  isWhole: boolean;
}

export function ShortLog({ id, attempt, status }: ShortLogProps): JSX.Element {
  const key = { run: id.run, name: id.task, index: id.index ?? 0, number: attempt ?? 1 };
  const isEnded = status !== "running" && status !== "dispatched";
  const read = useLoad(attempt === undefined ? null : `short log ${JSON.stringify(key)} ${isEnded}`, (source, signal) => readPart(source, key, signal), isEnded ? {} : { live: isOfRun(id.run), every: 3 });
  if (attempt === undefined) return <Empty title="There is no log: it has not been tried yet" icon="schedules" />;
  return (
    <Loaded read={read} what="the log" gone="The log is not kept any more">
      {(part) => (part.lines.length === 0 ? <p class="dim log-none">{isEnded ? "The log is empty." : "Nothing has been written yet."}</p> : <Lines part={part} log={key} />)}
    </Loaded>
  );
}

function Lines({ part, log }: { part: Part; log: LogKey }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const to = `${href(path("runs", log.run, "tasks", log.name, log.index, log.number, "log"))}`;
  const hash = part.error !== null && part.first !== null ? `#L${part.first + part.error}` : "";
  useEffect(() => {
    const element = box.current;
    const error = part.error === null ? null : (element?.children[part.error] as HTMLElement | undefined);
    if (element) element.scrollTop = error ? error.offsetTop - 44 : element.scrollHeight;
  }, [part.size, part.error]);
  return (
    <section class="short-log" aria-label="Log">
      <header>
        <h2>{part.error === null ? (part.isWhole ? "Log" : "End of the log") : "Log, at its first error"}</h2>
        <span class="push" />
        <a href={to + hash}>{bytes(part.size)}, open</a>
      </header>
      <div class="log-box is-short is-wrapped" ref={box} tabIndex={0} role="region" aria-label="Lines of the log">
        {part.lines.map((line, place) => <Row key={place} place={place} line={line} look={{ isSelected: false, isCurrent: place === part.error, start: null }} hits={() => []} number={part.first === null ? null : part.first + place} onNumber={(event) => event.preventDefault()} onWhole={() => undefined} />)}
      </div>
    </section>
  );
}

async function readPart(source: Source, log: LogKey, signal: AbortSignal): Promise<Part> {
  const end = await source.bytes(LOG, log, -SMALL, undefined, { signal });
  const size = end.size ?? end.bytes.length;
  if (end.start === 0) {
    const lines = linesOf(end.bytes, 0, true);
    const error = lines.findIndex((line) => levelOf(line.text) === "error");
    const from = Math.max(0, error >= 0 ? error - 20 : lines.length - MOST_LINES);
    const shown = lines.slice(from, from + MOST_LINES);
    return { lines: shown, first: from + 1, error: error >= 0 ? error - from : null, size, isWhole: shown.length === lines.length };
  }
  const found = await firstError(source, log, signal);
  if (!found) {
    const lines = linesOf(end.bytes.subarray(-PART), size - PART, false);
    return { lines: lines.slice(-MOST_LINES), first: null, error: null, size, isWhole: false };
  }
  const start = Math.max(0, found.offset - BEFORE);
  const piece = await source.bytes(LOG, log, start, PART, { signal });
  const lines = linesOf(piece.bytes, start, start === 0);
  const error = lines.findIndex((line) => line.offset + line.length >= found.offset);
  return { lines: lines.slice(0, MOST_LINES), first: error < 0 ? null : found.line - error, error: error < 0 ? null : error, size, isWhole: false };
}

async function firstError(source: Source, log: LogKey, signal: AbortSignal): Promise<{ line: number; offset: number } | null> {
  const found = await Promise.all(WORDS.map((q) => source.get(`${LOG}/search`, { ...log, q, limit: 1 }, { signal, seconds: 20 })));
  const hits = found.flatMap(({ hits: [first] }) => (first ? [first] : []));
  return hits.sort((a, b) => a.line - b.line)[0] ?? null;
}

/** The lines in a piece; the first is left out if it may have begun before. */
function linesOf(bytesOfLog: Uint8Array, start: number, isBeginning: boolean): Line[] {
  const splitter = new Splitter(start);
  const lines = splitter.push(bytesOfLog);
  const rest = splitter.rest();
  if (rest) lines.push(rest);
  return isBeginning || lines.length < 2 ? lines : lines.slice(1);
}
