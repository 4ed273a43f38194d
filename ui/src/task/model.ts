/** One task or instance of a run, with its attempts: what the panel and the page about it read. */

import type { Attempt, Failure, FailureFrame, Run, Task } from "../api.d.ts";
import { type Read, useLoad } from "../data/read.ts";
import type { Source } from "../data/source.ts";
import type { Change } from "../data/stream.ts";
import { changedQuery, currentPath, currentQuery, href, path } from "../router.ts";
import { argument, shortId, taskName } from "../words.ts";

/** `index` is null for a task without instances, and for a fan-out itself. */
export interface TaskId {
  run: string;
  task: string;
  index: number | null;
}

export interface FoundTask {
  run: Run;
  task: Task;
  /** The oldest first. A fan-out itself has none. */
  attempts: readonly Attempt[];
}

export function isOfRun(run: string): (change: Change) => boolean {
  return (change) => change.kind === "reset" || change.event.run.id.startsWith(run);
}

export function useTask(id: TaskId): Read<FoundTask> {
  return useLoad(`task ${JSON.stringify(id)}`, (source, signal) => readTask(source, id, signal), { live: isOfRun(id.run) });
}

/** In addresses, index 0 is a task without instances or the first instance; the task's own row tells which. */
export async function indexOf(source: Source, run: string, task: string, index: number, signal?: AbortSignal): Promise<number | null> {
  if (index > 0) return index;
  const { tasks } = await source.get("/runs/{run}/tasks", { run, name: task, limit: 1 }, { signal });
  return tasks[0] && tasks[0].instances !== null ? 0 : null;
}

async function readTask(source: Source, { run, task, index }: TaskId, signal: AbortSignal): Promise<FoundTask> {
  const cursor = index === null ? null : index === 0 ? task : `${task}[${index - 1}]`;
  const isFanOut = (row: Task): boolean => row.index === null && row.instances !== null;
  const [page, attempts] = await Promise.all([
    source.get("/runs/{run}/tasks", { run, name: task, cursor, limit: 1 }, { signal }),
    source.get("/runs/{run}/attempts", { run, task, index, limit: 100 }, { signal }),
  ]);
  const row = page.tasks[0];
  if (!row || row.name !== task || row.index !== index) throw new Missing(taskName(task, index));
  return { run: page.run, task: row, attempts: isFanOut(row) ? [] : attempts.attempts };
}

class Missing extends Error {
  constructor(name: string) {
    super(`The run has no task ${name}, or not yet.`);
  }
}

/** The attempt that is shown: the wanted one, or the last. */
export function attemptOf(found: FoundTask, wanted: number | null | undefined): Attempt | undefined {
  return found.attempts.find((each) => each.attempt === wanted) ?? found.attempts.at(-1);
}

/** The frames of a failure or a cause, which a worker wrote. */
export function framesIn(frames: unknown): FailureFrame[] {
  return Array.isArray(frames) ? frames.filter(isFrame) : [];
}

function isFrame(value: unknown): value is FailureFrame {
  return typeof value === "object" && value !== null && typeof (value as FailureFrame).file === "string" && typeof (value as FailureFrame).line === "number";
}

/** Inputs of the failed call, as the worker wrote them down. */
export function inputsOf(failure: Failure | null | undefined): [string, string][] {
  const inputs: unknown = failure?.detail?.inputs;
  if (typeof inputs !== "object" || inputs === null) return [];
  return Object.entries(inputs).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);
}

/** A message without what differs between two failures of one cause: numbers, ids, quoted values. */
export function kindOfMessage(message: string): string {
  return message
    .replace(/0x[0-9a-f]+|[0-9a-f]{8,}(?:-[0-9a-f]{4,})*/gi, "#")
    .replace(/'[^']*'|"[^"]*"/g, "''")
    .replace(/\d+/g, "#");
}

/** `load[3]` as the API takes it. */
export function target({ task, index }: Pick<TaskId, "task" | "index">): string {
  return taskName(task, index);
}

/** Where a task is shown: in the panel if the page of its run is open, else on its own page. Without an attempt, the last one. */
export function taskHref({ run, task, index }: TaskId, attempt = 0): string {
  if (currentPath.value === path("runs", run)) return href(`${currentPath.value}${changedQuery(currentQuery.value, { task, index, try: attempt || null })}`);
  return href(path("runs", run, "tasks", task, index ?? 0, attempt));
}

/** Shows the log; before there is one, why there is none. */
export function logCommand(id: TaskId, attempt?: number, isLast = true): string {
  if (attempt === undefined) return `ork why ${shortId(id.run)} ${argument(target(id))}`;
  return `ork logs ${shortId(id.run)} ${argument(target(id))}${!isLast ? ` --attempt ${attempt}` : ""}`;
}
