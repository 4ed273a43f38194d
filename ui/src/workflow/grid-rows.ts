/** Which rows and versions the grid shows. */

import type { GridRun, WorkflowGrid } from "../api.d.ts";

export interface Span {
  version: string;
  /** The place of its first run. */
  from: number;
  length: number;
}

/** Runs of the same version beside each other. */
export function spans(runs: readonly Pick<GridRun, "version">[]): Span[] {
  const found: Span[] = [];
  for (const [place, { version }] of runs.entries()) {
    const last = found.at(-1);
    if (last?.version === version) last.length += 1;
    else found.push({ version, from: place, length: 1 });
  }
  return found;
}

/** A label needs the width of so many columns. */
const LABEL = 2;

/** Places of runs that have a date above them: the first of each day, if there is room. */
export function dateLabels(runs: readonly Pick<GridRun, "created_at">[]): Set<number> {
  const found = new Set<number>();
  let last = -LABEL;
  for (const [place, run] of runs.entries()) {
    const isNew = runs[place - 1]?.created_at.slice(0, 10) !== run.created_at.slice(0, 10);
    if (!isNew || place - last < LABEL) continue;
    found.add(place);
    last = place;
  }
  return found;
}

const MANY = 100;

/** Places of tasks that fit, in workflow order; of many, those that failed most come first. */
export function tasksShown(grid: WorkflowGrid, text: string, isFailedOnly: boolean): number[] {
  const wanted = text.toLowerCase();
  const failures = (row: number): number => grid.runs.filter((run) => run.cells[row]?.status === "failed" || (run.cells[row]?.failed ?? 0) > 0).length;
  const rows = [...grid.tasks.keys()].filter((row) => (grid.tasks[row] ?? "").toLowerCase().includes(wanted));
  if (!isFailedOnly && rows.length <= MANY) return rows;
  const counted = rows.map((row) => [row, failures(row)] as const).filter(([, number]) => !isFailedOnly || number > 0);
  return (rows.length > MANY ? counted.sort(([a, x], [b, y]) => y - x || a - b) : counted).map(([row]) => row);
}
