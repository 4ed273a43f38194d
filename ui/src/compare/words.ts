/** The differences of two runs in sentences, the most telling first. */

import type { Durations, RunDifference, TaskDifference } from "../api.d.ts";
import { count, duration, lookOf, taskName } from "../words.ts";

export interface Sentence {
  /** What it is about, for its mark. */
  kind: "ended" | "params" | "definition" | "tasks" | "time" | "same";
  text: string;
}

const NAMED = 4;
const SHOWN = 80;
/** A change that people feel: a second, and a tenth. */
const SECONDS = 1;
const SHARE = 0.1;

export function sentences(found: RunDifference): Sentence[] {
  const differing = endedDifferently(found.tasks);
  const all: (Sentence | null)[] = [
    ended(found),
    ...Object.entries(found.params).map(([name, pair]): Sentence => ({ kind: "params", text: `Param \`${name}\` is ${shown(pair.b)} instead of ${shown(pair.a)}.` })),
    definition(found),
    tasks(differing),
    time(found.seconds),
  ];
  const said = all.filter((each) => each !== null);
  return said.length > 0 ? said : [{ kind: "same", text: "Both ran the same definition with the same params, and every task ended alike." }];
}

/** Not the row of a fan-out itself, if its instances are there. */
export function endedDifferently(all: readonly TaskDifference[]): TaskDifference[] {
  const differing = all.filter((task) => task.status !== null);
  const fans = new Set(differing.filter((task) => task.index !== null).map((task) => task.name));
  return differing.filter((task) => task.index !== null || !fans.has(task.name));
}

/** Tasks that took clearly longer or shorter, the largest change first. */
export function slower(all: readonly TaskDifference[]): TaskDifference[] {
  const change = ({ seconds: { a, b } }: TaskDifference): number => Math.abs((b ?? 0) - (a ?? 0));
  return all.filter((task) => isFelt(task.seconds)).sort((one, other) => change(other) - change(one));
}

/** `+2m 10s, 1.9 times as long`. */
export function changeOf({ a, b }: Durations): string {
  if (a === null || b === null) return "–";
  const difference = b - a;
  const sign = difference < 0 ? "−" : "+";
  const times = a > 0 ? b / a : 0;
  const words = a === 0 || Math.abs(times - 1) < 0.005 ? "" : times >= 1.95 ? `, ${times.toFixed(times < 10 ? 1 : 0)} times as long` : `, ${sign}${Math.round(Math.abs(times - 1) * 100)} %`;
  return `${sign}${duration(Math.abs(difference))}${words}`;
}

export function shown(value: unknown): string {
  const text = value === undefined || value === null ? "not set" : typeof value === "string" ? value : JSON.stringify(value);
  return text.length > SHOWN ? `${text.slice(0, SHOWN)}…` : text;
}

function ended({ status, error }: RunDifference): Sentence | null {
  if (status) return { kind: "ended", text: `The first run ${word(status.a)}, the second ${word(status.b)}${typeof error?.b === "string" ? `: ${error.b}` : typeof error?.a === "string" ? `. The first one's error: ${error.a}` : "."}` };
  return error ? { kind: "ended", text: `The errors differ: ${shown(error.a)} and ${shown(error.b)}.` } : null;
}

function definition({ definition: found, version, workflow }: RunDifference): Sentence | null {
  if (workflow) return { kind: "definition", text: `These are runs of different workflows: ${shown(workflow.a)} and ${shown(workflow.b)}.` };
  if (!found) return version ? { kind: "definition", text: "They ran different versions, whose definitions do not differ or cannot be read." } : null;
  const changed = Object.entries(found.changed).map(([name, keys]) => `\`${name}\` (${keys.join(", ")})`);
  const parts = [
    changed.length ? `changed ${listed(changed)}` : "",
    found.added.length ? `added ${listed(found.added.map(code))}` : "",
    found.removed.length ? `removed ${listed(found.removed.map(code))}` : "",
    found.keys.length ? `changed ${listed(found.keys.map(code))} of the workflow` : "",
  ].filter(Boolean);
  return parts.length ? { kind: "definition", text: `The definition was changed between them: ${parts.join("; ")}.` } : null;
}

function tasks(differing: readonly TaskDifference[]): Sentence | null {
  if (differing.length === 0) return null;
  const names = differing.map((task) => `\`${taskName(task.name, task.index)}\``);
  return { kind: "tasks", text: `${count(differing.length, "task")} ended differently: ${listed(names)}.` };
}

function time(seconds: Durations): Sentence | null {
  if (seconds.a === null || seconds.b === null || !isFelt(seconds)) return null;
  return { kind: "time", text: `The second took ${duration(seconds.b)} instead of ${duration(seconds.a)}: ${changeOf(seconds)}.` };
}

function isFelt({ a, b }: Durations): boolean {
  return a !== null && b !== null && Math.abs(b - a) >= SECONDS && Math.abs(b - a) >= SHARE * Math.max(a, b);
}

const VERBS: Record<string, string> = { success: "succeeded", failed: "failed", cancelled: "was cancelled" };

function word(status: unknown): string {
  if (typeof status !== "string") return "is missing";
  return VERBS[status] ?? `is ${lookOf(status).word}`;
}

function code(name: string): string {
  return `\`${name}\``;
}

function listed(names: readonly string[]): string {
  return names.length > NAMED + 1 ? `${names.slice(0, NAMED).join(", ")} and ${count(names.length - NAMED, "other")}` : names.join(", ");
}
