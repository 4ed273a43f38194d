/** The calendar's times by workflow and day. */

import type { CalendarTime, CalendarWorkflow } from "../api.d.ts";
import { localTime } from "./zones.ts";

/** What is known of one workflow on one day. */
export interface DayTimes {
  times: readonly CalendarTime[];
  /** The state that matters most: `failed`, `missed`, … `planned`. */
  worst: string;
}

const ORDER = ["failed", "missed", "running", "paused", "pending", "due", "cancelled", "success", "planned"];

/** What is shown of a time: the state of its run, or `missed`, `due`, `planned`. */
export function stateOf(time: CalendarTime): string {
  return time.state === "run" ? (time.run?.status ?? "pending") : time.state;
}

/** The times of a workflow by day in a zone. */
export function byDay(workflow: CalendarWorkflow, zone: string): Map<string, DayTimes> {
  const found = new Map<string, CalendarTime[]>();
  for (const time of workflow.times) {
    const { day } = localTime(Date.parse(time.time), zone);
    const list = found.get(day);
    if (list) list.push(time);
    else found.set(day, [time]);
  }
  return new Map([...found].map(([day, times]) => [day, { times, worst: worstOf(times) }]));
}

/** `8 success, 1 failed, 15 planned`. */
export function countsOf(times: readonly CalendarTime[]): [state: string, number: number][] {
  const counts = new Map<string, number>();
  for (const time of times) counts.set(stateOf(time), (counts.get(stateOf(time)) ?? 0) + 1);
  return [...counts].sort(([a], [b]) => rank(a) - rank(b));
}

function worstOf(times: readonly CalendarTime[]): string {
  return times.map(stateOf).reduce((a, b) => (rank(b) < rank(a) ? b : a), "planned");
}

function rank(state: string): number {
  const place = ORDER.indexOf(state);
  return place < 0 ? ORDER.length : place;
}
