/** The tasks of a run, each with the places of its instances in the columns. */

import { type Columns, NONE } from "../data/columns.ts";

export interface TaskGroup {
  /** The place in `names`. */
  task: number;
  name: string;
  /** The place of the task's own row; NONE before the run has started. */
  own: number;
  /** The places of the instances by index; empty unless it is a fan-out. */
  instances: Uint32Array;
}

/** One group for each task that has a row, in workflow order. */
export function groupTasks(columns: Columns): TaskGroup[] {
  const { names, length } = columns;
  const sizes = new Uint32Array(names.length);
  const own = new Int32Array(names.length).fill(NONE);
  for (let place = 0; place < length; place += 1) {
    const task = columns.task[place] ?? 0;
    if (columns.index[place] === NONE) own[task] = place;
    else sizes[task] = (sizes[task] ?? 0) + 1;
  }
  const groups = names.map((name, task): TaskGroup => ({ task, name, own: own[task] ?? NONE, instances: new Uint32Array(sizes[task] ?? 0) }));
  fillInstances(columns, groups);
  return groups.filter((group) => group.own !== NONE || group.instances.length > 0);
}

/** How many instances have each status. */
export function countsOf(columns: Columns, places: Uint32Array): Map<string, number> {
  const numbers = new Uint32Array(columns.statuses.length);
  for (const place of places) {
    const status = columns.status[place] ?? 0;
    numbers[status] = (numbers[status] ?? 0) + 1;
  }
  return new Map(columns.statuses.map((name, status): [string, number] => [name, numbers[status] ?? 0]).filter(([, number]) => number > 0));
}

/** Milliseconds from the run's start to the start of a row; NaN if it has not started. */
export function startOf(columns: Columns, place: number): number {
  return (columns.queued[place] ?? NaN) + (columns.wait[place] ?? NaN);
}

/** Milliseconds from the run's start to the end of a row; NaN if it has not ended. */
export function endOf(columns: Columns, place: number): number {
  return startOf(columns, place) + (columns.ran[place] ?? NaN);
}


function fillInstances(columns: Columns, groups: readonly TaskGroup[]): void {
  const filled = new Uint32Array(groups.length);
  const last = new Int32Array(groups.length).fill(NONE);
  const unsorted = new Set<TaskGroup>();
  for (let place = 0; place < columns.length; place += 1) {
    const index = columns.index[place] ?? NONE;
    if (index === NONE) continue;
    const task = columns.task[place] ?? 0;
    const group = groups[task];
    if (!group) continue;
    const at = filled[task] ?? 0;
    group.instances[at] = place;
    filled[task] = at + 1;
    if (index < (last[task] ?? NONE)) unsorted.add(group);
    last[task] = index;
  }
  for (const group of unsorted) group.instances.sort((a, b) => (columns.index[a] ?? 0) - (columns.index[b] ?? 0));
}
