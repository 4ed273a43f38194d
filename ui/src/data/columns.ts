/** Decodes `GET /runs/{run}/columns`: the tasks of a run as typed arrays. 100,000 tasks are a few megabytes. */

import type { RunColumns, TaskColumns } from "../api.d.ts";

/** A number that is not there: a task that was not dispatched, a row without index. */
export const NONE = -1;

/** One task, instance or earlier attempt. Times are milliseconds; null if it has not come to that. */
export interface TaskRow {
  place: number;
  name: string;
  index: number | null;
  status: string;
  attempt: number;
  /** From the run's start to the dispatch. */
  queued: number | null;
  /** From the dispatch to the start. */
  wait: number | null;
  /** From the start to the end. */
  ran: number | null;
}

export class Columns {
  readonly length: number;
  readonly task: Uint32Array;
  /** NONE for the row of a task itself. */
  readonly index: Int32Array;
  readonly status: Uint8Array;
  readonly attempt: Uint16Array;
  /** Milliseconds from the run's start; NaN if there are none. These may be negative. */
  readonly queued: Float64Array;
  readonly wait: Float64Array;
  readonly ran: Float64Array;

  constructor(
    readonly names: readonly string[],
    readonly statuses: readonly string[],
    given: TaskColumns,
  ) {
    this.length = given.task.length;
    for (const column of Object.values(given)) if (column.length !== this.length) throw new RangeError("columns differ in length");
    this.task = Uint32Array.from(given.task);
    this.index = Int32Array.from(given.index, (value) => value ?? NONE);
    this.status = Uint8Array.from(given.status);
    this.attempt = Uint16Array.from(given.attempt);
    this.queued = times(given.queued);
    this.wait = times(given.wait);
    this.ran = times(given.ran);
  }

  at(place: number): TaskRow {
    return {
      place,
      name: this.names[this.task[place] ?? 0] ?? "",
      index: this.index[place] === NONE ? null : (this.index[place] ?? null),
      status: this.statuses[this.status[place] ?? 0] ?? "",
      attempt: this.attempt[place] ?? 0,
      queued: number(this.queued[place]),
      wait: number(this.wait[place]),
      ran: number(this.ran[place]),
    };
  }

  /** How many rows have each status. Rows of fan-outs themselves are left out if `leaves` is set. */
  counts(leaves = false): Map<string, number> {
    const fans = leaves ? this.#fans() : null;
    const found = new Map<string, number>();
    for (let place = 0; place < this.length; place += 1) {
      if (fans && this.index[place] === NONE && fans.has(this.task[place] ?? 0)) continue;
      const status = this.statuses[this.status[place] ?? 0] ?? "";
      found.set(status, (found.get(status) ?? 0) + 1);
    }
    return found;
  }

  /** The tasks that have instances. */
  #fans(): Set<number> {
    const found = new Set<number>();
    for (let place = 0; place < this.length; place += 1) if (this.index[place] !== NONE) found.add(this.task[place] ?? 0);
    return found;
  }
}

export interface DecodedColumns {
  run: string;
  status: string;
  /** Milliseconds since 1970. */
  start: number;
  /** The next `since`. */
  mark: string;
  tasks: Columns;
  earlier: Columns;
}

export function decode(document: RunColumns): DecodedColumns {
  const { run, status, start, mark, names, statuses } = document;
  return { run, status, start, mark, tasks: new Columns(names, statuses, document.tasks), earlier: new Columns(names, statuses, document.earlier) };
}

/** The columns with the rows of a later document (`since` the mark of the first) in place of their old ones. */
export function merge(old: RunColumns, changes: RunColumns): RunColumns {
  return { ...changes, tasks: merged(old.tasks, changes.tasks, false), earlier: merged(old.earlier, changes.earlier, true) };
}

const COLUMNS = ["task", "index", "status", "attempt", "queued", "wait", "ran"] as const;

function merged(old: TaskColumns, changes: TaskColumns, isEarlier: boolean): TaskColumns {
  const key = (columns: TaskColumns, place: number): string =>
    `${columns.task[place]} ${columns.index[place] ?? ""}${isEarlier ? ` ${columns.attempt[place]}` : ""}`;
  const places = new Map<string, number>();
  for (let place = 0; place < old.task.length; place += 1) places.set(key(old, place), place);
  const next: Record<string, (number | null)[]> = {};
  for (const name of COLUMNS) next[name] = [...old[name]];
  for (let place = 0; place < changes.task.length; place += 1) {
    const at = places.get(key(changes, place)) ?? next["task"]!.length;
    for (const name of COLUMNS) next[name]![at] = changes[name][place] ?? null;
  }
  return next as unknown as TaskColumns;
}

function times(values: readonly (number | null)[]): Float64Array {
  return Float64Array.from(values, (value) => value ?? Number.NaN);
}

function number(value: number | undefined): number | null {
  return value === undefined || Number.isNaN(value) ? null : value;
}
