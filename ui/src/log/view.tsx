/** The log of one attempt: lines, search, errors, folding, following. Its state is in the address. */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { pauseBefore } from "../data/backoff.ts";
import { asProblem, isAbort } from "../data/problem.ts";
import { source } from "../data/session.ts";
import { Empty } from "../parts/empty.tsx";
import { Icon } from "../parts/icons.tsx";
import { Waiting } from "../parts/page.tsx";
import { ProblemView } from "../parts/problem.tsx";
import { currentHash, currentQuery, setHash, setQuery } from "../router.ts";
import { useShortcuts } from "../shortcuts.ts";
import { count, milliseconds } from "../words.ts";
import { LogBar } from "./bar.tsx";
import { HitMap } from "./hitmap.tsx";
import { ERROR_PATTERN } from "./kinds.ts";
import { hashOfLines, type Line, linesOfHash } from "./lines.ts";
import type { LogModel } from "./model.ts";
import { FoldRow, Row, type RowLook } from "./row.tsx";
import type { Hit } from "./scan.ts";
import { type Found, MOST_HITS, NOTHING, placesOf, type Query, scan, search } from "./search.ts";
import { Viewport, type ViewportHandle } from "./viewport.tsx";
import { WholeLine } from "./whole-line.tsx";

const ROW = 20;

export interface LogViewProps {
  model: LogModel;
  /** The attempt writes. */
  isRunning: boolean;
  /** It writes, or has written until a moment ago: there may be more than was read. */
  mayGrow: boolean;
  startedAt: string | null;
}

export function LogView({ model, isRunning, mayGrow, startedAt }: LogViewProps): JSX.Element {
  const query = currentQuery.value;
  const given = useMemo((): Query => ({ text: query.get("q") ?? "", isPattern: query.has("re"), ignoreCase: !query.has("case") }), [query]);
  const found = useSearch(model, given);
  const errors = useErrors(model, query.has("errors"));
  const onlyErrors = query.has("errors");
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [whole, setWhole] = useState<{ line: Line; number: number | null } | null>(null);
  const [hit, setHit] = useState(-1);
  const [isFollowing, setFollowing] = useState(isRunning && linesOfHash(currentHash.value) === null);
  const [isAtEnd, setAtEnd] = useState(true);
  const viewport = useRef<ViewportHandle>(null);
  const selected = linesOfHash(currentHash.value);
  const version = model.changed.value;
  const total = model.lines.value;
  useFollow(model, mayGrow);
  const newLines = useNewLines(total, isAtEnd || isFollowing);

  const shown = onlyErrors ? errors.found.hits : null;
  const places = shown ? shown.length : total ?? model.tail.length;
  const toLine = (line: number): void => {
    setFollowing(false);
    setAtEnd(false);
    const place = shown ? shown.findIndex((each) => each.line >= line) : line - 1;
    viewport.current?.toPlace(Math.max(0, place));
  };
  const toHit = (step: number): void => {
    const hits = found.hits;
    if (hits.length === 0) return;
    const next = (hit < 0 ? (step > 0 ? 0 : hits.length - 1) : hit + step + hits.length) % hits.length;
    setHit(next);
    toLine(hits[next]?.line ?? 1);
  };
  const toError = (): void => errors.next(selected?.first ?? 0, (line) => { setHash(hashOfLines(line)); toLine(line); });
  const toEnd = (): void => {
    setAtEnd(true);
    if (isRunning) setFollowing(true);
    viewport.current?.toEnd();
  };

  // The start: the lines of the address, else the end.
  const isCounted = total !== null;
  useEffect(() => {
    if (!isCounted && places === 0) return;
    if (selected && isCounted) toLine(selected.first);
    else if (!selected) viewport.current?.toEnd();
  }, [isCounted, onlyErrors, model, places > 0]);
  // Other lines in the address of the open page: from a link, or typed.
  const toAddress = useRef<() => void>(() => undefined);
  toAddress.current = () => {
    const lines = linesOfHash(currentHash.peek());
    if (lines && isCounted) toLine(lines.first);
  };
  useEffect(() => {
    const listen = (): void => toAddress.current();
    addEventListener("hashchange", listen);
    return () => removeEventListener("hashchange", listen);
  }, []);
  useEffect(() => setHit(-1), [given]);
  // The first hit shows itself as soon as it is there.
  const hasHits = found.hits.length > 0;
  const askedFirst = useRef(given.text);
  useEffect(() => { if (hasHits && (!selected || given.text !== askedFirst.current)) toHit(1); }, [hasHits, given.text]);
  useShortcuts([
    { keys: "f", does: "Follow", group: "Log", run: () => (isFollowing ? setFollowing(false) : toEnd()) },
    { keys: "e", does: "Next error", group: "Log", run: toError },
    { keys: "n", does: "Next hit", group: "Log", run: () => toHit(1) },
    { keys: "N", does: "Previous hit", group: "Log", run: () => toHit(-1) },
    { keys: "w", does: "Wrap lines", group: "Log", run: () => setQuery({ wrap: query.has("wrap") ? null : 1 }) },
    { keys: "G", does: "To the end", group: "Log", run: toEnd },
  ]);

  const folds = !onlyErrors && !query.has("unfold") && isCounted;
  const fold = (place: number): { first: number; last: number } | undefined => {
    const range = folds ? model.foldAt(place) : undefined;
    return range && !opened.has(range.first) ? range : undefined;
  };
  const start = query.has("times") && startedAt ? milliseconds(startedAt) : null;
  const hitOf = useMemo(() => new Map(found.hits.map((each) => [each.line, each])), [found.hits, found.hits.length]);
  const current = found.hits[hit]?.line;
  const row = (place: number): JSX.Element => {
    const range = fold(place);
    if (range) return <FoldRow key={`fold ${place}`} place={place} frames={model.foldAt(place)?.frames ?? 1} hasTimes={start !== null} onOpen={() => setOpened(new Set([...opened, range.first]))} />;
    const error = shown?.[place];
    const number = error ? error.line : isCounted ? place + 1 : null;
    const line = error ? lineOfHit(error) : isCounted ? model.at(place) : model.tail[place];
    const look: RowLook = { isSelected: number !== null && selected !== null && selected.first <= number && number <= selected.last, isCurrent: number !== null && number === current, start };
    return (
      <Row
        key={place} place={place} line={line} look={look} number={number}
        hits={(text) => placesIn(given, number === null ? undefined : hitOf.get(number), text)}
        onNumber={(event) => { event.preventDefault(); if (number !== null) select(number, event.shiftKey); }}
        onWhole={(each) => setWhole({ line: each, number })}
      />
    );
  };

  const problem = model.problem.value;
  if (problem && places === 0) return <ProblemView problem={problem} again={() => model.again()} gone="The log is not kept any more" />;
  if (total === null && places === 0) return <Waiting what="the log" />;
  const marks = found.hits.length > 0 ? found.hits : errors.found.hits;
  return (
    <div class={`log-view${onlyErrors ? " is-filtered" : ""}`} style={{ "--digits": `${Math.max(4, String(total ?? 1_000_000).length)}ch` }}>
      <LogBar model={model} query={given} found={found} hit={hit} onHit={toHit} errors={errors.found} onError={toError} onEnd={toEnd} isFollowing={isFollowing} canFollow={isRunning} onFollow={(isOn) => (isOn ? toEnd() : setFollowing(false))} onLine={(first, last) => { setHash(hashOfLines(first, last)); toLine(first); }} />
      {problem && <div class="banner is-warning" role="status"><span>{problem.title}. {problem.detail}</span><button type="button" class="button small" onClick={() => model.again()}>Try again</button></div>}
      {places === 0 ? <Empty title={onlyErrors ? (errors.found.isRunning ? "Looking for errors …" : "No line looks like an error") : isRunning ? "Nothing has been written yet" : "The log is empty"} icon="runs" onClear={onlyErrors ? () => setQuery({ errors: null }) : undefined} /> : (
        <div class="log-frame">
          <Viewport
            count={places} label="Lines of the log" rowHeight={ROW} row={row} fold={fold} sticks={isFollowing && !onlyErrors} wraps={query.has("wrap")} handle={viewport}
            version={`${version} ${opened.size} ${folds} ${found.hits.length} ${hit} ${currentHash.value} ${start}`}
            onEnd={(isNow) => { setAtEnd(isNow); if (isFollowing && !isNow) setFollowing(false); }}
          />
          {marks.length > 0 && total !== null && <HitMap lines={marks.map((each) => each.line)} total={total} onGo={toLine} />}
          {newLines > 0 && <button type="button" class="log-new button small primary" onClick={toEnd}>{count(newLines, "new line")}<Icon name="down" /></button>}
        </div>
      )}
      {onlyErrors && errors.found.total > errors.found.hits.length && <p class="partial">The first {count(errors.found.hits.length, "error")} of {count(errors.found.total, "line")}.</p>}
      {whole && <WholeLine model={model} {...whole} onClose={() => setWhole(null)} />}
    </div>
  );
}

function select(number: number, isRange: boolean): void {
  const before = linesOfHash(currentHash.value);
  if (before && !isRange && before.first === number && before.last === number) setHash("");
  else setHash(isRange && before ? hashOfLines(before.first, number) : hashOfLines(number));
}

function lineOfHit(hit: Hit): Line {
  return { offset: 0, length: hit.text.length, text: hit.text };
}

function placesIn(query: Query, hit: Hit | undefined, text: string): readonly (readonly [number, number])[] {
  if (query.text === "") return [];
  if (query.isPattern) return hit?.at ? [hit.at] : [];
  return placesOf(query, text);
}

/** Reads on while the attempt writes and the page is seen. */
function useFollow(model: LogModel, mayGrow: boolean): void {
  const isCounted = model.lines.value !== null;
  useEffect(() => {
    if (!mayGrow || !isCounted) return undefined;
    let turn = new AbortController();
    const onVisible = (): void => {
      turn.abort();
      if (document.hidden) return;
      turn = new AbortController();
      void followOn(model, turn.signal);
    };
    onVisible();
    document.addEventListener("visibilitychange", onVisible);
    return () => { document.removeEventListener("visibilitychange", onVisible); turn.abort(); };
  }, [model, mayGrow, isCounted]);
}

/** Connects again until the attempt has ended. */
async function followOn(model: LogModel, signal: AbortSignal): Promise<void> {
  for (let tries = 0; !signal.aborted; tries += 1) {
    if (await model.follow(signal)) return;
    const pause = pauseBefore(tries) * 1000;
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, pause);
      signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
    });
  }
}

/** Lines that were added since the end was last seen. */
function useNewLines(total: number | null, isSeen: boolean): number {
  const before = useRef<number | null>(null);
  if (isSeen || before.current === null) before.current = total;
  return total === null || before.current === null ? 0 : total - before.current;
}

function useSearch(model: LogModel, query: Query): Found {
  const [found, setFound] = useState<Found>(NOTHING);
  useEffect(() => {
    setFound(NOTHING);
    if (query.text === "") return undefined;
    const turn = new AbortController();
    const later = setTimeout(() => void search(source, model.key, query, turn.signal, setFound), 150);
    return () => { clearTimeout(later); turn.abort(); };
  }, [model, query.text, query.isPattern, query.ignoreCase]);
  return found;
}

interface Errors {
  found: Found;
  /** Calls back with the first error after a line; after the last one, with the first. */
  next: (after: number, go: (line: number) => void) => void;
}

/** Errors are looked for when they are first wanted, in one pass over the log. */
function useErrors(model: LogModel, isWanted: boolean): Errors {
  const [found, setFound] = useState<Found>(NOTHING);
  const [isOn, setOn] = useState(isWanted);
  const asked = useRef<{ after: number; go: (line: number) => void } | null>(null);
  useEffect(() => { if (isWanted) setOn(true); }, [isWanted]);
  useEffect(() => {
    if (!isOn) return undefined;
    const turn = new AbortController();
    setFound({ ...NOTHING, isRunning: true, isComplete: false });
    scan(source, model.key, { pattern: ERROR_PATTERN, flags: "", most: MOST_HITS }, turn.signal, (next) => setFound({ ...next })).catch((error: unknown) => {
      if (!isAbort(error)) setFound({ ...NOTHING, problem: asProblem(error) });
    });
    return () => turn.abort();
  }, [model, isOn]);
  const answer = (): void => {
    const wanted = asked.current;
    if (!wanted) return;
    const next = found.hits.find((each) => each.line > wanted.after) ?? (found.isRunning ? undefined : found.hits[0]);
    if (!next && found.isRunning) return;
    asked.current = null;
    if (next) wanted.go(next.line);
  };
  useEffect(() => { if (isOn && (found.isRunning || found.hits.length || found.isComplete)) answer(); }, [found]);
  return {
    found,
    next: (after, go) => {
      asked.current = { after, go };
      if (isOn) answer();
      else setOn(true);
    },
  };
}
