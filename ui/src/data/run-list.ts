/** A list of runs that is read page by page and stays fresh: newest first, without gaps and doubles. */

import { useEffect, useMemo } from "preact/hooks";
import type { ListedRun, Run, RunEvent, RunPage } from "../api.d.ts";
import { asProblem } from "./problem.ts";
import { type Read, useLoad } from "./read.ts";
import { source } from "./session.ts";
import type { Given } from "./source.ts";
import { onChange } from "./stream.ts";
import { isFinal } from "../words.ts";
import { notifyProblem } from "../parts/notice.tsx";

export const PAGE = 100;

export interface RunList {
  rows: readonly ListedRun[];
  /** Where the next page begins; null if there is none. */
  cursor: string | null;
  /** Whether more than the first page was read. */
  isLong: boolean;
  count: number | null;
  isExact: boolean;
  partial: boolean;
}

const NOTHING: RunList = { rows: [], cursor: null, isLong: false, count: null, isExact: false, partial: false };

/** The list with its first page read again. Rows that were pushed from it by newer ones stay. */
export function withFirst(list: RunList, page: RunPage): RunList {
  const head = { count: page.count, isExact: page.count_is_exact ?? false, partial: page.partial };
  const end = page.runs.at(-1);
  if (!list.isLong || page.cursor === null || !end) return { ...head, rows: page.runs, cursor: page.cursor, isLong: false };
  return { ...head, rows: [...page.runs, ...list.rows.filter((run) => isBefore(run, end))], cursor: list.cursor, isLong: true };
}

export function withNext(list: RunList, page: RunPage): RunList {
  const known = new Set(list.rows.map((run) => run.id));
  return { ...list, rows: [...list.rows, ...page.runs.filter((run) => !known.has(run.id))], cursor: page.cursor, isLong: true };
}

/** The list after one of its runs changed; null if it has no such run. A run that no longer has one of the states leaves it. */
export function withChanged(list: RunList, event: RunEvent, statuses: readonly string[]): RunList | null {
  const place = list.rows.findIndex((run) => run.id === event.run.id);
  const old = list.rows[place];
  if (!old) return null;
  const isWanted = statuses.length === 0 || statuses.includes(event.run.status);
  const next: ListedRun = { ...event.run, progress: progressOf(event) ?? old.progress };
  return { ...list, rows: isWanted ? list.rows.with(place, next) : list.rows.toSpliced(place, 1) };
}

function progressOf({ counts }: RunEvent): ListedRun["progress"] {
  if (!counts) return null;
  const all = Object.entries(counts);
  const sum = (part: [string, number | undefined][]): number => part.reduce((total, [, number]) => total + (number ?? 0), 0);
  return { done: sum(all.filter(([status]) => isFinal(status))), total: sum(all) };
}

function isBefore(run: Pick<Run, "created_at" | "id">, other: Pick<Run, "created_at" | "id">): boolean {
  return run.created_at < other.created_at || (run.created_at === other.created_at && run.id < other.id);
}

/** Runs that fit, kept fresh. `more` reads the next page. */
export function useRunList(given: Omit<Given<"/runs">, "limit" | "cursor" | "counts">): { read: Read<RunList>; more: () => Promise<void> } {
  const key = `runs ${JSON.stringify(given)}`;
  const held = useMemo(() => ({ list: NOTHING, isBusy: false }), [key]);
  const read = useLoad(key, async (from, signal) => {
    const page = await from.get("/runs", { ...given, limit: PAGE, counts: true }, { signal });
    held.list = withFirst(held.list, page);
    return held.list;
  }, { live: true, keep: true });
  const show = (list: RunList): void => { held.list = list; read.data.value = list; };
  useEffect(() => onChange((change) => {
    const list = change.kind === "run" && held.list.isLong ? withChanged(held.list, change.event, given.status ?? []) : null;
    if (list) show(list);
  }), [key]);
  const more = async (): Promise<void> => {
    if (held.isBusy || held.list.cursor === null) return;
    held.isBusy = true;
    try {
      show(withNext(held.list, await source.get("/runs", { ...given, limit: PAGE, counts: true, cursor: held.list.cursor })));
    } catch (error) {
      notifyProblem(asProblem(error));
    }
    held.isBusy = false;
  };
  return { read, more };
}
