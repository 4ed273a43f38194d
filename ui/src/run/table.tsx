/** All tasks and instances of a run as a table. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { now } from "../clock.ts";
import { NONE, type TaskRow } from "../data/columns.ts";
import { fine } from "../draw/axis.ts";
import { Empty } from "../parts/empty.tsx";
import { Picked } from "../parts/rows.ts";
import { State } from "../parts/state.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { currentQuery } from "../router.ts";
import { duration, grouped, isFinal, taskName } from "../words.ts";
import { filter, placeOfSelection, type RunTasks, select, selection } from "./model.ts";

interface TaskTableProps {
  tasks: RunTasks;
  clearFilters: () => void;
}

export function TaskTable({ tasks, clearFilters }: TaskTableProps): JSX.Element {
  const filterKey = `${currentQuery.value.get("find") ?? ""}\n${currentQuery.value.get("state") ?? ""}`;
  const rows = useMemo(() => {
    const keep = filter(tasks);
    if (!keep) return tasks.tasks;
    const places = new Uint32Array(tasks.tasks.length);
    let length = 0;
    for (let place = 0; place < tasks.tasks.length; place += 1) if (keep(place)) places[length++] = place;
    return new Picked(tasks.tasks, places.subarray(0, length));
  }, [tasks, filterKey]);
  const columns = useMemo(() => columnsOf(tasks), [tasks]);
  const selected = placeOfSelection(tasks, selection());
  if (rows.length === 0) {
    return tasks.tasks.length === 0 ? <Empty title="No task has a row yet" icon="schedules">The run has not started.</Empty> : <Empty title="No task matches" icon="filter" onClear={clearFilters} />;
  }
  return (
    <>
      <Table
        label="Tasks"
        rows={rows}
        columns={columns}
        rowKey={(row) => String(row.place)}
        onOpen={(row) => select({ task: row.name, index: row.index })}
        selected={selected === NONE ? null : String(selected)}
        rowHeight={30}
      />
      <p class="readout dim">{rows.length === tasks.tasks.length ? grouped(rows.length) : `${grouped(rows.length)} of ${grouped(tasks.tasks.length)}`} rows; a fan-out has a row of its own before its instances</p>
    </>
  );
}

function columnsOf(tasks: RunTasks): Column<TaskRow>[] {
  const isRunning = !isFinal(tasks.status);
  const sizes = new Map(tasks.groups.filter((group) => group.instances.length > 0).map((group) => [group.own, group.instances.length]));
  const by = (value: (row: TaskRow) => number | null) => (a: TaskRow, b: TaskRow): number => (value(a) ?? -1) - (value(b) ?? -1);
  return [
    { key: "name", head: "Task", width: "minmax(9rem, 3fr)", sort: byName, cell: (row) => <>{taskName(row.name, row.index)}{sizes.has(row.place) && <span class="dim"> ×{grouped(sizes.get(row.place) ?? 0)}</span>}</> },
    { key: "status", head: "State", width: "7.5rem", phone: "glyph", sort: (a, b) => (a.status < b.status ? -1 : a.status > b.status ? 1 : 0), cell: (row) => <State of={row.status} /> },
    { key: "try", head: "Attempt", width: "4.5rem", align: "right", wide: true, sort: by((row) => row.attempt), cell: (row) => row.attempt || "–" },
    { key: "queued", head: "Dispatched at", width: "7.5rem", align: "right", wide: true, sort: by((row) => row.queued), cell: (row) => <span class="number">{fine(row.queued)}</span> },
    { key: "wait", head: "Waited", width: "5.5rem", align: "right", wide: true, sort: by((row) => row.wait), cell: (row) => <span class="number">{fine(row.wait)}</span> },
    { key: "ran", head: "Ran", width: "5.5rem", align: "right", sort: by((row) => row.ran), cell: (row) => (isRunning && row.ran === null && row.wait !== null ? <Running since={tasks.start + (row.queued ?? 0) + row.wait} /> : <span class="number">{fine(row.ran)}</span>) },
  ];
}

/** Counts on while it runs. */
function Running({ since }: { since: number }): JSX.Element {
  return <span class="number">{duration((now.value - since) / 1000)}</span>;
}

function byName(a: TaskRow, b: TaskRow): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : (a.index ?? -1) - (b.index ?? -1);
}
