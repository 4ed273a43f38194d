/** Durations, times, counts and states in words, as the command line says them (`ork.status.formatting`). */

const DASH = "–";

/** 0.2s, 12.1s, 4m 12s, 2h 5m, 3d 4h. */
export function duration(seconds: number | null | undefined): string {
  if (seconds == null || Number.isNaN(seconds)) return DASH;
  const given = Math.max(seconds, 0);
  if (given < 59.95) return `${given.toFixed(1)}s`;
  const whole = roundHalfEven(given);
  if (whole < 3600) return pair(whole, 60, "m", 1, "s");
  if (whole < 86400) return pair(whole, 3600, "h", 60, "m");
  return pair(whole, 86400, "d", 3600, "h");
}

/** A duration in a single unit, for estimates: 40s, 2m, 3h, 5d. */
export function rough(seconds: number): string {
  for (const [size, unit] of [[86400, "d"], [3600, "h"], [60, "m"]] as const) {
    if (seconds >= size) return `${roundHalfEven(seconds / size)}${unit}`;
  }
  return `${Math.max(roundHalfEven(seconds), 0)}s`;
}

/** `just now`, `5m ago`, `in 40s`; a dash for null. Times are RFC 3339 or milliseconds. */
export function ago(time: string | number | null | undefined, now: number): string {
  if (time == null) return DASH;
  const seconds = (now - milliseconds(time)) / 1000;
  if (Math.abs(seconds) < 1) return "just now";
  return seconds > 0 ? `${rough(seconds)} ago` : `in ${rough(-seconds)}`;
}

export function between(start: string | null | undefined, end: string | null | undefined): string {
  if (start == null || end == null) return DASH;
  return duration((milliseconds(end) - milliseconds(start)) / 1000);
}

/** The seconds from start to end, or until now if it has not ended; null if it has not started. */
export function secondsOf(start: string | null | undefined, end: string | null | undefined, now: number): number | null {
  if (start == null) return null;
  return ((end == null ? now : milliseconds(end)) - milliseconds(start)) / 1000;
}

/** `1 task`, `1,204 tasks`. */
export function count(number: number, noun: string, plural = `${noun}s`): string {
  return `${grouped(number)} ${number === 1 ? noun : plural}`;
}

/** 1204 → `1,204`. */
export function grouped(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ",");
}

/** 200 B, 1.5 KB, 12.0 MB. */
export function bytes(size: number): string {
  if (size < 1000) return `${size} B`;
  const units = ["KB", "MB", "GB", "TB"];
  let value = size;
  let unit = -1;
  do {
    value /= 1000;
    unit += 1;
  } while (value >= 999.95 && unit < units.length - 1);
  return `${value.toFixed(1)} ${units[unit]}`;
}

/** `$1.20`; two digits that say something where it is less than a cent. */
export function dollars(usd: number): string {
  if (usd === 0) return "$0";
  if (usd >= 0.01) return `$${usd.toFixed(2)}`;
  return `$${usd.toFixed(1 - Math.floor(Math.log10(usd)))}`;
}

export function percent(share: number | null | undefined): string {
  return share == null ? DASH : `${Math.round(share * 100)} %`;
}

/** 2026-07-05 14:02:07 UTC. */
export function utc(time: string | number): string {
  const text = new Date(milliseconds(time)).toISOString();
  return `${text.slice(0, 10)} ${text.slice(11, 19)} UTC`;
}

/** 14:02:07 in UTC; with the date if it is another day than now. */
export function utcClock(time: string | number, now: number): string {
  const text = new Date(milliseconds(time)).toISOString();
  const isToday = text.slice(0, 10) === new Date(now).toISOString().slice(0, 10);
  return isToday ? text.slice(11, 19) : `${text.slice(0, 10)} ${text.slice(11, 19)}`;
}

export function milliseconds(time: string | number): number {
  return typeof time === "number" ? time : Date.parse(time);
}

/** The beginning of a run's id, which commands accept. */
export function shortId(run: string): string {
  return run.slice(0, 6);
}

/** `load`, or `load[3]` for an instance. */
export function taskName(name: string, index: number | null | undefined): string {
  return index == null ? name : `${name}[${index}]`;
}

/** A word quoted for a shell, if it needs it. */
export function argument(text: string): string {
  return /^[\w./@:=+,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

/** How a state looks: the palette's name for its colour and glyph, and the word that is shown. */
export interface Look {
  kind: StateKind;
  word: string;
}

export type StateKind =
  | "success" | "failed" | "running" | "queued" | "retrying" | "skipped" | "pending" | "cancelled" | "paused" | "waiting";

const LOOKS: Record<string, Look> = {
  success: { kind: "success", word: "success" },
  failed: { kind: "failed", word: "failed" },
  lost: { kind: "failed", word: "lost" },
  timed_out: { kind: "failed", word: "timed out" },
  unreadable: { kind: "failed", word: "unreadable" },
  "set aside": { kind: "failed", word: "set aside" },
  running: { kind: "running", word: "running" },
  dispatched: { kind: "queued", word: "dispatched" },
  queued: { kind: "queued", word: "queued" },
  retrying: { kind: "retrying", word: "retrying" },
  skipped: { kind: "skipped", word: "skipped" },
  cancelled: { kind: "cancelled", word: "cancelled" },
  pending: { kind: "pending", word: "pending" },
  paused: { kind: "paused", word: "paused" },
  waiting: { kind: "waiting", word: "waiting" },
};

/** An unknown state keeps its own word, with the glyph of pending. */
export function lookOf(state: string): Look {
  return (Object.hasOwn(LOOKS, state) ? LOOKS[state] : undefined) ?? { kind: "pending", word: state.replaceAll("_", " ") };
}

/** The state that a run is shown in; damaged and quarantined runs are shown as such. */
export function runState(run: { status: string; unreadable?: string | null; note?: string | null }): string {
  if (run.status === "paused" && (run.note ?? "").startsWith("set aside")) return "set aside";
  return run.unreadable ? "unreadable" : run.status;
}

export function isFinal(status: string): boolean {
  return status === "success" || status === "failed" || status === "cancelled" || status === "skipped";
}

function pair(whole: number, large: number, largeUnit: string, small: number, smallUnit: string): string {
  const rest = Math.floor((whole % large) / small);
  return `${Math.floor(whole / large)}${largeUnit}${rest ? ` ${rest}${smallUnit}` : ""}`;
}

/** As Python rounds. */
function roundHalfEven(value: number): number {
  const low = Math.floor(value);
  const part = value - low;
  if (part !== 0.5) return Math.round(value);
  return low % 2 === 0 ? low : low + 1;
}
