/** Failures grouped by their message: is it one problem or forty? */

import type { Run } from "./api.d.ts";

export interface FailureGroup {
  /** The message without numbers and ids, which the runs of the group have in common. */
  key: string;
  /** The task that failed first; null if the error names none. */
  task: string | null;
  /** The message of the newest run. */
  message: string;
  /** Newest first. */
  runs: Run[];
  /** The names of the runs' workflows, those with most runs first. */
  workflows: string[];
}

/** Groups of runs with the same task and message, the one with the newest failure first. */
export function groupFailures(runs: readonly Run[]): FailureGroup[] {
  const groups = new Map<string, FailureGroup>();
  for (const run of [...runs].sort((a, b) => (endOf(a) < endOf(b) ? 1 : -1))) {
    const { task, message } = splitError(run.error);
    const key = `${task ?? ""}\n${common(message)}`;
    const group = groups.get(key);
    if (group) group.runs.push(run);
    else groups.set(key, { key, task, message, runs: [run], workflows: [] });
  }
  for (const group of groups.values()) group.workflows = namesOf(group.runs);
  return [...groups.values()];
}

/** "task `load` failed: instance 4 failed: HTTPError: 503" → load and "HTTPError: 503". */
export function splitError(error: string | null): { task: string | null; message: string } {
  const found = /^task `?([^`\s]+)`? failed(?:: ([\s\S]*))?$/.exec(error ?? "");
  if (!found) return { task: null, message: error ?? "failed" };
  const message = (found[2] ?? "").replace(/^instance \d+ failed(?:: )?/, "");
  return { task: found[1] ?? null, message: message || "failed" };
}

/** The message with what differs between occurrences replaced: ids, numbers, quoted texts and paths below them. */
export function common(message: string): string {
  return message
    .slice(0, 1000)
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{8,}\b/gi, "#")
    .replace(/\b0x[0-9a-f]+\b/gi, "#")
    .replace(/\b(?=[a-z]*\d)(?=\d*[a-z])[0-9a-z]{12,}\b/gi, "#")
    .replace(/\d+(?:[.,:]\d+)*/g, "#");
}

export function endOf(run: Pick<Run, "finished_at" | "created_at">): string {
  return run.finished_at ?? run.created_at;
}

function namesOf(runs: readonly Run[]): string[] {
  const counts = new Map<string, number>();
  for (const run of runs) counts.set(run.workflow, (counts.get(run.workflow) ?? 0) + 1);
  return [...counts].sort(([a, x], [b, y]) => y - x || (a < b ? -1 : 1)).map(([name]) => name);
}
