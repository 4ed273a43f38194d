/** Tasks by runs: which task failed when, how long runs took, and where the version changed. */

import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import type { GridCell, GridRun, WorkflowGrid } from "../api.d.ts";
import { useLoad, useRead } from "../data/read.ts";
import type { Change } from "../data/stream.ts";
import { changesBetween, changeText } from "../definition.ts";
import { Empty, Partial } from "../parts/empty.tsx";
import { Choice, Search } from "../parts/form.tsx";
import { Glyph } from "../parts/icons.tsx";
import { Loaded } from "../parts/page.tsx";
import { currentPath, currentQuery, href, path, setQuery } from "../router.ts";
import { argument, count, duration, grouped, lookOf, taskName, utc } from "../words.ts";
import { dateLabels, spans, tasksShown } from "./grid-rows.ts";

const SHOWN_ROWS = 100;

export function Grid({ name }: { name: string }): JSX.Element {
  const runs = Number(currentQuery.value.get("runs") ?? "50");
  const isOurs = (change: Change): boolean => change.kind === "reset" || change.event.run.workflow === name;
  const read = useRead("/workflows/{name}/grid", { name, runs: [10, 25, 50].includes(runs) ? runs : 50 }, { live: isOurs });
  return (
    <Loaded read={read} what="the runs">
      {(grid) => (grid.runs.length === 0 ? <Empty title="It has not run yet" icon="runs" command={`ork trigger ${argument(name)}`} /> : <Table grid={grid} />)}
    </Loaded>
  );
}

function Table({ grid }: { grid: WorkflowGrid }): JSX.Element {
  const text = currentQuery.value.get("find") ?? "";
  const only = currentQuery.value.get("only") ?? "";
  const scroller = useRef<HTMLDivElement>(null);
  // The newest run is at the right end.
  useLayoutEffect(() => { if (scroller.current) scroller.current.scrollLeft = scroller.current.scrollWidth; }, [grid.runs.length]);
  const runs = useMemo(() => [...grid.runs].reverse(), [grid]);
  const rows = useMemo(() => tasksShown(grid, text, only === "failed"), [grid, text, only]);
  const labels = useMemo(() => dateLabels(runs), [runs]);
  const longest = Math.max(1e-9, ...runs.map((run) => run.seconds ?? 0));
  return (
    <>
      <div class="page-bar">
        {grid.tasks.length > 12 && <Search label="Task" placeholder="Filter tasks" value={text} onInput={(find) => setQuery({ find })} />}
        <Choice label="Tasks" value={only} onChange={(next) => setQuery({ only: next })} options={[["", "All tasks"], ["failed", "With failures"]]} />
        <Choice label="Runs" value={currentQuery.value.get("runs") ?? "50"} onChange={(next) => setQuery({ runs: next === "50" ? null : next })} options={[["10", "10 runs"], ["25", "25"], ["50", "50"]]} />
        <span class="dim grid-key">a number: that many instances failed</span>
      </div>
      <div class="grid-box" tabIndex={0} role="region" aria-label="Tasks and runs" ref={scroller}>
        <table class="grid">
          <thead>
            <tr class="grid-dates"><th scope="col"><span class="only-read">Task</span></th>{runs.map((run, place) => <th scope="col" key={run.id}><span class={labels.has(place) ? "grid-date" : "only-read"} title={utc(run.created_at)}>{labels.has(place) ? run.created_at.slice(5, 10) : utc(run.created_at)}</span></th>)}</tr>
          </thead>
          <tbody>
            <tr class="grid-bars">
              <th scope="row">run</th>
              {runs.map((run) => {
                const label = `${lookOf(run.status).word}, ${duration(run.seconds)}, ${run.trigger}, ${utc(run.created_at)}`;
                return <td key={run.id}><a href={href(path("runs", run.id))} title={label} aria-label={label} class={`is-${lookOf(run.status).kind}`}><span style={{ height: `${12 + 88 * Math.sqrt((run.seconds ?? 0) / longest)}%` }} /></a></td>;
              })}
            </tr>
            {rows.slice(0, SHOWN_ROWS).map((row) => (
              <tr key={row}>
                <th scope="row" title={grid.tasks[row]}>{grid.tasks[row]}<Width grid={grid} row={row} /></th>
                {runs.map((run) => <td key={run.id}><Cell run={run} cell={run.cells[row] ?? null} task={grid.tasks[row] ?? ""} /></td>)}
              </tr>
            ))}
            <tr class="grid-versions">
              <th scope="row">version</th>
              {spans(runs).map((span) => <td key={span.from} colSpan={span.length}><a href={href(`${currentPath.value}?view=versions`)} title={`Version ${span.version}`}>{span.version.slice(0, 4)}</a></td>)}
            </tr>
          </tbody>
        </table>
      </div>
      {rows.length === 0 && <Empty title="No task fits" onClear={() => setQuery({ find: null, only: null })} />}
      {rows.length > SHOWN_ROWS && <Partial shown={SHOWN_ROWS} of={rows.length} what="tasks, those with failures first. Filter by name to see others" />}
      <WhatChanged runs={runs} />
    </>
  );
}

/** `×24`: the instances in the newest run that has some. */
function Width({ grid, row }: { grid: WorkflowGrid; row: number }): JSX.Element | null {
  const width = grid.runs.find((run) => (run.cells[row]?.instances ?? 0) > 0)?.cells[row]?.instances;
  return width ? <span class="dim"> ×{grouped(width)}</span> : null;
}

function Cell({ run, cell, task }: { run: GridRun; cell: GridCell | null; task: string }): JSX.Element | null {
  if (!cell) return null;
  const look = lookOf(cell.status);
  const text = cell.failed > 0 ? `${grouped(cell.failed)} of ${count(cell.instances, "instance")} failed` : look.word;
  const label = `${taskName(task, null)}, ${utc(run.created_at)}: ${text}`;
  return (
    <a href={href(`${path("runs", run.id)}?task=${encodeURIComponent(task)}`)} title={label} aria-label={label} class={cell.failed > 0 ? "grid-number is-failed" : `is-${look.kind}`}>
      {cell.failed > 0 ? (cell.failed > 999 ? "1k+" : cell.failed) : <Glyph kind={look.kind} />}
    </a>
  );
}

const SHOWN_CHANGES = 3;

/** What changed between the versions of the runs that are shown, newest first. */
function WhatChanged({ runs }: { runs: readonly GridRun[] }): JSX.Element | null {
  const versions = spans(runs).map((span) => span.version);
  const pairs = versions.slice(1).map((after, place) => [versions[place] ?? "", after] as const).reverse().slice(0, SHOWN_CHANGES);
  const read = useLoad(pairs.length === 0 ? null : `changes ${pairs.join()}`, (from, signal) => Promise.all(pairs.map(async ([before, after]) => {
    const found = await from.get("/versions/{version}/diff/{other}", { version: before, other: after }, { signal });
    return { before, after, changes: changesBetween(found.before, found.after) };
  })));
  const found = read.data.value;
  if (!found || found.length === 0) return null;
  return (
    <ul class="what-changed">
      {found.map(({ before, after, changes }) => (
        <li key={`${before} ${after}`}>
          <code>{before.slice(0, 4)} → {after.slice(0, 4)}</code> {changes.slice(0, 4).map(changeText).join(" · ") || "only files changed"}{changes.length > 4 && ` · ${changes.length - 4} more`} <a href={href(`${currentPath.value}?view=versions&a=${before}&b=${after}`)}>Compare</a>
        </li>
      ))}
    </ul>
  );
}
