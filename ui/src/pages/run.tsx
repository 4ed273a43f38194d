/** What happened, and what next? */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Graph, RunSummary } from "../api.d.ts";
import { usePaletteActions } from "../commands.ts";
import { NONE } from "../data/columns.ts";
import { type Read, useLoad, useRead } from "../data/read.ts";
import type { Change } from "../data/stream.ts";
import type { PageProps } from "../pages.ts";
import { Copyable } from "../parts/command.tsx";
import { Search, Select } from "../parts/form.tsx";
import { announce } from "../parts/notice.tsx";
import { Loaded, Page } from "../parts/page.tsx";
import { RunState } from "../parts/state.tsx";
import { currentTab, Tabs } from "../parts/tabs.tsx";
import { TaskPanel } from "../parts/task-panel.tsx";
import { currentQuery, go, path, setQuery } from "../router.ts";
import { RunActions } from "../run/actions.tsx";
import { GraphView } from "../run/graph.tsx";
import { RunHead } from "../run/head.tsx";
import { withCounts } from "../run/live.ts";
import { failedPlaces, pathNames, placeOfSelection, type RunTasks, runTasks, select, selection, selectionAt } from "../run/model.ts";
import { Mosaic } from "../run/mosaic.tsx";
import { LogSearch } from "../run/search.tsx";
import { TaskTable } from "../run/table.tsx";
import { Timeline } from "../run/timeline.tsx";
import { useShortcuts } from "../shortcuts.ts";
import { argument, grouped, lookOf, shortId, taskName } from "../words.ts";

const VIEWS = [["timeline", "Timeline"], ["graph", "Graph"], ["table", "Table"], ["search", "Log search"]] as const;
const TABS = VIEWS.map(([key, label], place) => ({ key, label: <>{label} <kbd class="wide-only">{place + 1}</kbd></> }));

export default function RunPage({ params }: PageProps): JSX.Element {
  const id = params["id"] ?? "";
  const isOurs = (change: Change): boolean => change.kind === "reset" || change.event.run.id.startsWith(id);
  const summary: Read<RunSummary> = useRead("/runs/{run}/summary", { run: id }, { live: (change) => isOurs(change) && !isShown(summary, change), seconds: 30 });
  const tasks = useTasks(id, isOurs);
  const wasGraph = useRef(false);
  wasGraph.current ||= currentTab(TABS) === "graph";
  const graph = useRead("/runs/{run}/graph", wasGraph.current ? { run: id } : null, { seconds: 30 });
  const run = summary.data.value?.run;
  const status = run?.status;
  const before = useRef(status);
  useEffect(() => {
    if (status && before.current && status !== before.current) announce(`The run is ${lookOf(status).word}`);
    before.current = status;
  }, [status]);
  return (
    <Page
      title={run ? `${run.workflow} ${shortId(run.id)}` : `Run ${shortId(id)}`}
      heading={run && <><RunState run={run} /> <span>{run.workflow}</span> <Copyable text={run.id} shown={shortId(run.id)} /></>}
      crumbs={run ? [["runs", "Runs"], [path("workflows", run.workflow), run.workflow]] : [["runs", "Runs"]]}
      actions={summary.data.value && <RunActions summary={summary.data.value} selected={selection()} />}
      read={summary}
      what="the run"
      gone={`There is no run ${id}, or retention has removed it`}
      command={commandOf(id)}
      live
    >
      {(found) => <Contents summary={found} tasks={tasks} graph={graph} isOurs={isOurs} />}
    </Page>
  );
}

/** Shows other counts at once; false if the summary has to be read again. */
function isShown(read: Read<RunSummary>, change: Change): boolean {
  const found = read.data.peek();
  if (!found || change.kind !== "run" || read.problem.peek()) return false;
  const next = withCounts(found, change.event, (Date.now() - (read.asOf.peek() ?? Date.now())) / 1000);
  if (!next) return false;
  read.data.value = next;
  read.asOf.value = Date.now();
  return true;
}

/** All tasks of the run; after the first time only what changed is read. */
function useTasks(id: string, isOurs: (change: Change) => boolean): Read<RunTasks> {
  const known = useRef<RunTasks | undefined>(undefined);
  return useLoad(`columns ${id}`, async (from, signal) => {
    const document = await from.get("/runs/{run}/columns", { run: id, since: known.current?.mark }, { signal, seconds: 30 });
    known.current = runTasks(document, known.current);
    return known.current;
  }, { live: isOurs });
}

/** The command that shows what the page shows. */
function commandOf(id: string): string {
  const short = shortId(id);
  const text = currentQuery.value.get("q");
  const view = currentTab(TABS);
  if (view === "search" && text) return `ork logs ${short} --search ${argument(text)}`;
  const selected = selection();
  if (selected) return `ork why ${short} ${argument(taskName(selected.task, selected.index))}`;
  return view === "table" ? `ork show ${short} --instances` : `ork show ${short}`;
}

interface ContentsProps {
  summary: RunSummary;
  tasks: Read<RunTasks>;
  graph: Read<Graph>;
  isOurs: (change: Change) => boolean;
}

function Contents({ summary, tasks, graph, isOurs }: ContentsProps): JSX.Element {
  const selected = selection();
  const view = currentTab(TABS);
  const run = summary.run.id;
  useRunShortcuts(run, tasks);
  return (
    <>
      <RunHead summary={summary} isOurs={isOurs} />
      <div class="run-bar">
        <Tabs tabs={TABS} label="Views of the run" />
        {view !== "search" && <Filters tasks={tasks.data.value} />}
      </div>
      <div class="beside run-body">
        <div class="run-view">
          {view === "search" ? <LogSearch run={run} /> : (
            <Loaded read={tasks} what="the tasks">
              {(found) => (
                <>
                  {view === "timeline" && <Timeline tasks={found} critical={pathNames(summary)} clearFilters={clearFilters} />}
                  {view === "graph" && <GraphView read={graph} tasks={found} critical={pathNames(summary)} />}
                  {view === "table" && <TaskTable tasks={found} clearFilters={clearFilters} />}
                  {view !== "table" && <Mosaic tasks={found} />}
                </>
              )}
            </Loaded>
          )}
        </div>
        {selected && <TaskPanel run={run} task={selected.task} index={selected.index} onClose={() => select(null)} />}
      </div>
    </>
  );
}

function clearFilters(): void {
  setQuery({ find: null, state: null });
}

/** Find by name and filter by state, for all views of tasks. */
function Filters({ tasks }: { tasks: RunTasks | undefined }): JSX.Element {
  const counts = useMemo(() => tasks?.tasks.counts(true) ?? new Map<string, number>(), [tasks]);
  const kinds = new Map<string, number>();
  for (const [status, number] of counts) kinds.set(lookOf(status).kind, (kinds.get(lookOf(status).kind) ?? 0) + number);
  const state = currentQuery.value.get("state") ?? "";
  if (state && !kinds.has(state)) kinds.set(state, 0);
  return (
    <div class="run-filters">
      <Search label="Find a task" placeholder="Find a task" value={currentQuery.value.get("find") ?? ""} onInput={(find) => setQuery({ find })} />
      <Select label="State" hideLabel value={state} options={[["", "All states"], ...[...kinds].map(([kind, number]) => [kind, number ? `${lookOf(kind).word} (${grouped(number)})` : lookOf(kind).word] as const)]} onChange={(next) => setQuery({ state: next })} />
    </div>
  );
}

function useRunShortcuts(run: string, tasks: Read<RunTasks>): void {
  const group = "This run";
  const failure = (step: number): void => {
    const found = tasks.data.peek();
    if (!found) return;
    const failed = failedPlaces(found);
    const at = failed.indexOf(placeOfSelection(found, selection()));
    const next = failed[(at === NONE && step < 0 ? 0 : at + step + failed.length) % Math.max(1, failed.length)];
    if (next !== undefined) select(selectionAt(found, next));
  };
  const log = (): void => {
    const found = tasks.data.peek();
    if (!found) return;
    const chosen = placeOfSelection(found, selection());
    const place = chosen === NONE ? failedPlaces(found)[0] : chosen;
    if (place === undefined) return;
    const row = found.tasks.at(place);
    go(path("runs", run, "tasks", row.name, row.index ?? 0, Math.max(1, row.attempt)));
  };
  useShortcuts([
    ...VIEWS.map(([key, label], place) => ({ keys: String(place + 1), does: label, group, run: () => setQuery({ view: place === 0 ? null : key }) })),
    { keys: "n", does: "Next failure", group, run: () => failure(1) },
    { keys: "N", does: "Previous failure", group, run: () => failure(-1) },
    { keys: "l", does: "Log", group, run: log },
  ]);
  usePaletteActions([
    ...VIEWS.map(([key, label], place) => ({ label: `Run: ${label}`, words: "view", keys: String(place + 1), run: () => setQuery({ view: place === 0 ? null : key }) })),
    { label: "Run: next failure", words: "failed error", keys: "n", run: () => failure(1) },
  ]);
}
