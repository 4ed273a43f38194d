/** What the views of a run share: its tasks, what is filtered, what is selected. */

import type { RunColumns, RunSummary } from "../api.d.ts";
import { type DecodedColumns, decode, merge, NONE } from "../data/columns.ts";
import { groupTasks, type TaskGroup } from "../draw/groups.ts";
import { changedQuery, currentPath, currentQuery, href, type QueryChanges, setQuery } from "../router.ts";
import { lookOf, type StateKind } from "../words.ts";

export interface RunTasks extends DecodedColumns {
  raw: RunColumns;
  groups: readonly TaskGroup[];
  byName: ReadonlyMap<string, TaskGroup>;
}

/** The tasks after a first or a further document; a further one has only what changed. */
export function runTasks(document: RunColumns, before?: RunTasks): RunTasks {
  if (before && document.tasks.task.length === 0 && document.earlier.task.length === 0) {
    return { ...before, status: document.status, mark: document.mark };
  }
  const raw = before ? merge(before.raw, document) : document;
  const decoded = decode(raw);
  const groups = groupTasks(decoded.tasks);
  return { ...decoded, raw, groups, byName: new Map(groups.map((group) => [group.name, group])) };
}

export interface Selection {
  task: string;
  index: number | null;
}

/** The task or instance that the address names. */
export function selection(): Selection | null {
  const task = currentQuery.value.get("task");
  if (task === null) return null;
  const index = currentQuery.value.get("index");
  return { task, index: index !== null && /^\d+$/.test(index) ? Number(index) : null };
}

/** Opens or closes the panel of a task. The first one adds a step to the history, so that Back closes it. */
export function select(next: Selection | null): void {
  setQuery(selecting(next), { push: next !== null && selection() === null });
}

/** The link that opens the panel of a task. */
export function selectLink(task: string, index: number | null): string {
  return href(`${currentPath.value}${changedQuery(currentQuery.value, selecting({ task, index }))}`);
}

/** The attempt (`try`) belongs to the task that was selected before; the view of the panel (`panel`) is kept for the next one. */
function selecting(next: Selection | null): QueryChanges {
  return { task: next?.task, index: next?.index, try: null, ...(next ? {} : { panel: null }) };
}

/** The place of the selected row; NONE if there is none. */
export function placeOfSelection(tasks: RunTasks, selected: Selection | null): number {
  if (!selected) return NONE;
  const group = tasks.byName.get(selected.task);
  if (!group) return NONE;
  if (selected.index === null) return group.own;
  const direct = group.instances[selected.index];
  if (direct !== undefined && tasks.tasks.index[direct] === selected.index) return direct;
  return group.instances.find((place) => tasks.tasks.index[place] === selected.index) ?? NONE;
}

export function selectionAt(tasks: RunTasks, place: number): Selection {
  const { name, index } = tasks.tasks.at(place);
  return { task: name, index };
}

/** Which rows the filters of the address keep; null if there is no filter. */
export function filter(tasks: RunTasks): ((place: number) => boolean) | null {
  const find = (currentQuery.value.get("find") ?? "").trim().toLowerCase();
  const state = currentQuery.value.get("state");
  if (!find && !state) return null;
  const { tasks: columns } = tasks;
  const isState = columns.statuses.map((status) => !state || lookOf(status).kind === state || status === state);
  const instance = /^(.*)\[(\d+)\]?$/.exec(find);
  const wanted = instance?.[1] ?? find;
  const isName = columns.names.map((name) => name.toLowerCase().includes(wanted));
  const index = instance ? Number(instance[2]) : null;
  return (place) =>
    Boolean(isState[columns.status[place] ?? 0] && isName[columns.task[place] ?? 0]) && (index === null || columns.index[place] === index);
}

/** Places of failed rows, without those of fan-outs as a whole. */
export function failedPlaces(tasks: RunTasks): number[] {
  const { tasks: columns, groups } = tasks;
  const isFailed = columns.statuses.map((status) => lookOf(status).kind === "failed");
  return groups.flatMap((group) => {
    const failed = [...group.instances].filter((place) => isFailed[columns.status[place] ?? 0]);
    return failed.length === 0 && group.own !== NONE && isFailed[columns.status[group.own] ?? 0] ? [group.own] : failed;
  });
}

export function kindAt(tasks: RunTasks, place: number): StateKind {
  return place === NONE ? "pending" : lookOf(tasks.tasks.statuses[tasks.tasks.status[place] ?? 0] ?? "").kind;
}

/** Names of the critical path, first step first. */
export function pathNames(summary: RunSummary): string[] {
  return summary.critical_path.map((step) => step.name);
}
