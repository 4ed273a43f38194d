/** How well a workflow is, from its last runs: marks of a day by the hour, and whether it became slower. */

import type { CalendarTime, Run, RunMark, WorkflowHealth } from "./api.d.ts";
import { addDays, localTime } from "./data/zones.ts";
import { milliseconds } from "./words.ts";

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** One column of the strip: the runs that were created in an hour, and scheduled times in it without a run. */
export interface Slot {
  start: number;
  runs: RunMark[];
  missed: number;
  planned: number;
}

/** Slots of `size` milliseconds from `start` on. Runs and times outside are left out. */
export function slots(start: number, count: number, size: number, runs: readonly RunMark[], times: readonly CalendarTime[]): Slot[] {
  const found = Array.from({ length: count }, (_, place): Slot => ({ start: start + place * size, runs: [], missed: 0, planned: 0 }));
  const at = (time: string): Slot | undefined => found[Math.floor((milliseconds(time) - start) / size)];
  for (const run of runs) at(run.created_at)?.runs.push(run);
  for (const each of times) {
    const slot = each.state === "run" ? undefined : at(each.time);
    if (!slot) continue;
    if (each.state === "missed") slot.missed += 1;
    else slot.planned += 1;
  }
  return found;
}

const SEVERITY = ["failed", "running", "paused", "pending", "cancelled", "success"];

/** The state that stands for several runs: the one that matters most. */
export function worst(runs: readonly { status: string }[]): string | null {
  return SEVERITY.find((status) => runs.some((run) => run.status === status)) ?? runs[0]?.status ?? null;
}

/** Nothing to do: the last run that ended succeeded, and none since `since` failed. */
export function isWell(workflow: Pick<WorkflowHealth, "runs">, since: number): boolean {
  const last = workflow.runs.find((run) => run.status === "success" || run.status === "failed");
  return last?.status !== "failed" && !workflow.runs.some((run) => run.status === "failed" && milliseconds(run.created_at) >= since);
}

const LEAST_COMPARED = 4;

/** The change of the median duration: the newer half of the successful runs against the older half. Null if there are too few. */
export function trend(runs: readonly Pick<RunMark, "status" | "seconds">[]): number | null {
  const seconds = runs.filter((run) => run.status === "success" && run.seconds !== null).map((run) => run.seconds as number);
  const half = Math.floor(seconds.length / 2);
  if (half < LEAST_COMPARED) return null;
  const [now, before] = [median(seconds.slice(0, half)), median(seconds.slice(half))];
  return before > 0 ? now / before - 1 : null;
}

export function median(values: readonly number[]): number {
  const ordered = [...values].sort((a, b) => a - b);
  return ordered[Math.max(0, Math.ceil(ordered.length / 2) - 1)] ?? 0;
}

/** `▲ 9 %`, `▼ 12 %`; nothing if it is less than 5 % and so means nothing. */
export function changeInWords(change: number | null | undefined): { text: string; isSlower: boolean } | null {
  if (change == null || Math.abs(change) < 0.05) return null;
  const share = Math.round(Math.abs(change) * 100);
  return { text: `${change > 0 ? "▲" : "▼"} ${share > 999 ? "999+" : share} %`, isSlower: change > 0 };
}

/** What happened on one day, for a heat map. */
export interface DayCount {
  /** 2026-11-18, on the clocks of the zone. */
  day: string;
  runs: number;
  failed: number;
  succeeded: number;
  missed: number;
  planned: number;
  seconds: number;
}

/** So many days from the first one on, each with its runs. A scheduled run counts on the day it was scheduled for. */
export function byDay(first: string, count: number, zone: string, runs: readonly RunMark[], times: readonly CalendarTime[]): DayCount[] {
  const days = new Map<string, DayCount>();
  for (let step = 0; step < count; step++) {
    const day = addDays(first, step);
    days.set(day, { day, runs: 0, failed: 0, succeeded: 0, missed: 0, planned: 0, seconds: 0 });
  }
  for (const run of runs) {
    const count = days.get(localTime(milliseconds(run.scheduled_for ?? run.created_at), zone).day);
    if (!count) continue;
    count.runs += 1;
    count.failed += run.status === "failed" ? 1 : 0;
    count.succeeded += run.status === "success" ? 1 : 0;
    count.seconds += run.seconds ?? 0;
  }
  for (const each of times) {
    const count = days.get(localTime(milliseconds(each.time), zone).day);
    if (count && each.state === "missed") count.missed += 1;
    if (count && (each.state === "planned" || each.state === "due")) count.planned += 1;
  }
  return [...days.values()];
}

/** A run of a list as a mark. */
export function markOf(run: Pick<Run, "id" | "status" | "trigger" | "created_at" | "scheduled_for" | "started_at" | "finished_at">): RunMark {
  const { id, status, trigger, created_at, scheduled_for, started_at, finished_at } = run;
  const seconds = started_at === null || finished_at === null ? null : (milliseconds(finished_at) - milliseconds(started_at)) / 1000;
  return { id, status, trigger, created_at, scheduled_for, seconds };
}

/** The share of runs that succeeded, of those that succeeded or failed. */
export function successRate(runs: readonly { status: string }[]): number | null {
  const good = runs.filter((run) => run.status === "success").length;
  const bad = runs.filter((run) => run.status === "failed").length;
  return good + bad === 0 ? null : good / (good + bad);
}
