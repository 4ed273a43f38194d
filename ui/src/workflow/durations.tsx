/** How long tasks take, and the change to the week before. */

import type { JSX } from "preact";
import type { Spread, WorkflowDurations } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { changeInWords } from "../health.ts";
import { Empty } from "../parts/empty.tsx";
import { Loaded } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { count, duration } from "../words.ts";

interface Row extends Spread {
  name: string;
  isRun: boolean;
  /** The largest p95, for the bars. */
  most: number;
}

const COLUMNS: readonly Column<Row>[] = [
  { key: "name", head: "Task", width: "minmax(7rem, 2fr)", cell: (row) => (row.isRun ? <b>the whole run</b> : row.name) },
  { key: "bar", head: "p50 and p95", width: "minmax(6rem, 3fr)", wide: true, cell: (row) => <Bar row={row} /> },
  { key: "p50", head: "p50", width: "5.5rem", align: "right", cell: (row) => <span class="number">{duration(row.p50)}</span>, sort: (a, b) => (a.p50 ?? 0) - (b.p50 ?? 0) },
  { key: "p95", head: "p95", width: "5.5rem", align: "right", wide: true, cell: (row) => <span class="number">{duration(row.p95)}</span>, sort: (a, b) => (a.p95 ?? 0) - (b.p95 ?? 0) },
  { key: "before", head: "Week before", width: "6rem", align: "right", wide: true, cell: (row) => <span class="number dim">{duration(row.p50_before)}</span> },
  { key: "change", head: "Change", width: "5rem", align: "right", cell: (row) => <Change of={row.change} />, sort: (a, b) => (a.change ?? 0) - (b.change ?? 0) },
  { key: "count", head: "Runs", width: "4rem", align: "right", wide: true, cell: (row) => <span class="number dim">{row.count}</span> },
];

export function Durations({ name }: { name: string }): JSX.Element {
  const read = useRead("/workflows/{name}/durations", { name }, { seconds: 30 });
  return (
    <Loaded read={read} what="the durations">
      {(found) =>
        found.runs.count === 0 ? (
          <Empty title="No run succeeded in the last week" icon="runs">Durations are those of successful runs.</Empty>
        ) : (
          <div class="durations">
            <Table label="Durations of tasks" rows={rowsOf(found)} columns={COLUMNS} rowKey={(row) => (row.isRun ? " run" : row.name)} />
            <p class="dim note">From {count(found.runs.count, "successful run")} of the last week, at most 50, compared with the week before. A fan-out counts from its first instance to its last.</p>
          </div>
        )
      }
    </Loaded>
  );
}

function rowsOf({ runs, tasks }: WorkflowDurations): Row[] {
  const most = Math.max(1e-9, runs.p95 ?? 0, ...tasks.map((task) => task.p95 ?? 0));
  return [{ ...runs, name: "", isRun: true, most }, ...tasks.map((task) => ({ ...task, isRun: false, most }))];
}

function Bar({ row }: { row: Row }): JSX.Element {
  const share = (seconds: number | null): string => `${((seconds ?? 0) / row.most) * 100}%`;
  return (
    <span class="spread" aria-hidden="true">
      <span class="spread-p95" style={{ width: share(row.p95) }} />
      <span class="spread-p50" style={{ width: share(row.p50) }} />
      {row.p50_before !== null && <span class="spread-before" style={{ left: share(row.p50_before) }} title="p50 of the week before" />}
    </span>
  );
}

function Change({ of }: { of: number | null }): JSX.Element {
  const words = changeInWords(of);
  return words ? <span class={`change number ${words.isSlower ? "is-slower" : "is-faster"}`}>{words.text}</span> : <span class="dim">{of === null ? "–" : "same"}</span>;
}
