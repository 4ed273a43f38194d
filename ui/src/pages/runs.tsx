/** Where is that run? */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { ListedRun } from "../api.d.ts";
import { type RunList, useRunList } from "../data/run-list.ts";
import { splitError } from "../failures.ts";
import { BulkAction, type BulkKind, BulkRefusals, MOST_AT_ONCE } from "../parts/bulk.tsx";
import { Empty, Partial } from "../parts/empty.tsx";
import { Page } from "../parts/page.tsx";
import { RunState } from "../parts/state.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago, Took } from "../parts/time.tsx";
import { href, path } from "../router.ts";
import { clearFilters, commandOf, Filters, useFilters } from "../runs/filters.tsx";
import { useShortcuts } from "../shortcuts.ts";
import { count, grouped, isFinal, lookOf, shortId } from "../words.ts";

const COLUMNS: readonly Column<ListedRun>[] = [
  { key: "id", head: "Run", width: "4.4rem", phone: "4rem", cell: (run) => <code>{shortId(run.id)}</code> },
  { key: "status", head: "State", width: "7rem", phone: "glyph", cell: (run) => <RunState run={run} /> },
  { key: "workflow", head: "Workflow", width: "minmax(6rem, 2fr)", cell: (run) => <span title={run.workflow}>{run.workflow}</span> },
  { key: "done", head: "Done", width: "7.5rem", wide: true, cell: (run) => <Done run={run} /> },
  { key: "error", head: "Error", width: "minmax(6rem, 4fr)", wide: true, cell: (run) => run.error && <ErrorText error={run.error} /> },
  { key: "trigger", head: "Trigger", width: "5.5rem", wide: true, cell: (run) => <span class="dim">{run.trigger}</span> },
  { key: "took", head: "Took", width: "5.5rem", align: "right", wide: true, cell: (run) => <Took start={run.started_at} end={run.finished_at} /> },
  { key: "created", head: "Created", width: "5rem", phone: "4.5rem", align: "right", cell: (run) => <Ago at={run.created_at} /> },
];

export default function Runs(): JSX.Element {
  const { given, key, isFiltered } = useFilters();
  const { read, more } = useRunList(given);
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  useEffect(() => setPicked(new Set()), [key]);
  const onPick = (keys: readonly string[], isPicked: boolean): void => {
    const next = new Set(picked);
    for (const each of keys) if (isPicked) next.add(each); else next.delete(each);
    setPicked(next);
  };
  return (
    <Page title="Runs" read={read} live fill command={commandOf(given)} bar={<Filters aside={<Found list={read.data.value} />} />}>
      {(list) =>
        list.rows.length === 0 && list.cursor ? (
          <Empty title="None of the newest runs fits these filters" icon="filter" onClear={clearFilters}>
            <button type="button" class="button" onClick={() => void more()}>Search older runs</button>
          </Empty>
        ) : list.rows.length === 0 ? (
          isFiltered ? <Empty title="No run fits these filters" icon="filter" onClear={clearFilters} /> : <Empty title="No runs yet" icon="runs" command="ork run workflow.yaml">Start one from a workflow file, or deploy a workflow and start it here.</Empty>
        ) : (
          <div class="runs">
            <Table label="Runs" rows={list.rows} columns={COLUMNS} rowKey={(run) => run.id} href={(run) => href(path("runs", run.id))} total={list.count ?? undefined} picked={picked} onPick={onPick} />
            <Rest list={list} more={more} />
            <BulkRefusals />
            {picked.size > 0 && <PickedBar rows={list.rows.filter((run) => picked.has(run.id))} clear={() => setPicked(new Set())} />}
          </div>
        )
      }
    </Page>
  );
}

function ErrorText({ error }: { error: string }): JSX.Element {
  const { task, message } = splitError(error);
  return <span title={error}>{task && <b>{task}: </b>}<span class="dim">{message}</span></span>;
}

function Done({ run }: { run: ListedRun }): JSX.Element | null {
  const { progress } = run;
  if (!progress || progress.total === 0) return null;
  return (
    <span class={`done-total is-${lookOf(run.status).kind}`} title={`${grouped(progress.done)} of ${count(progress.total, "task")} have ended`}>
      {!isFinal(run.status) && <span class="mini" aria-hidden="true"><span style={{ width: `${(progress.done / progress.total) * 100}%` }} /></span>}
      <span class="number">{grouped(progress.done)}/{grouped(progress.total)}</span>
    </span>
  );
}

function Found({ list }: { list: RunList | undefined }): JSX.Element | null {
  if (!list || list.count === null) return null;
  return <span class="found" role="status">{list.isExact ? count(list.count, "run") : `more than ${count(list.count, "run")}`}</span>;
}

function Rest({ list, more }: { list: RunList; more: () => Promise<void> }): JSX.Element | null {
  if (list.cursor) return <Partial shown={list.rows.length} of={list.isExact ? list.count : null} what="runs" more={() => void more()} />;
  if (list.partial) return <p class="partial">Some runs that fit are not shown: too many would have to be read. Choose a workflow or a shorter time.</p>;
  return null;
}

interface BulkButton {
  kind: BulkKind;
  label: string;
  icon: "retry" | "stop" | "pause" | "play";
  ask: (runs: string) => string;
  fits: (run: ListedRun) => boolean;
  reason: string;
}

const BUTTONS: readonly BulkButton[] = [
  { kind: "retry", label: "Retry failed", icon: "retry", ask: (runs) => `Retries the tasks of ${runs} that did not succeed.`, fits: (run) => run.status === "failed" || run.status === "cancelled", reason: "None of these runs has failed." },
  { kind: "cancel", label: "Cancel", icon: "stop", ask: (runs) => `Stops the running tasks of ${runs}. Tasks that wait are not started.`, fits: (run) => !isFinal(run.status), reason: "All of these runs have ended." },
  { kind: "pause", label: "Pause", icon: "pause", ask: (runs) => `Starts no new tasks of ${runs}. Running tasks continue.`, fits: (run) => run.status === "running" || run.status === "pending", reason: "None of these runs is going on." },
  { kind: "resume", label: "Resume", icon: "play", ask: (runs) => `Continues ${runs}.`, fits: (run) => run.status === "paused", reason: "None of these runs is paused." },
];

/** Actions on all picked runs; a button takes those that it fits. */
function PickedBar({ rows, clear }: { rows: readonly ListedRun[]; clear: () => void }): JSX.Element {
  const press = (kind: BulkKind): void => document.querySelector<HTMLButtonElement>(`.picked-bar [data-kind="${kind}"] button`)?.click();
  useShortcuts([
    { keys: "R", does: "Retry the picked runs", group: "Runs", run: () => press("retry") },
    { keys: "x", does: "Cancel the picked runs", group: "Runs", run: () => press("cancel") },
    { keys: "Escape", does: "Pick nothing", group: "Runs", run: clear },
  ]);
  return (
    <div class="picked-bar" role="region" aria-label="Picked runs">
      <b>{count(rows.length, "run")} picked</b>
      {BUTTONS.map(({ kind, label, icon, ask, fits, reason }) => {
        const runs = rows.filter(fits);
        const isSome = runs.length > 0 && runs.length < rows.length;
        return (
          <span key={kind} data-kind={kind}>
            <BulkAction kind={kind} small icon={icon} label={isSome ? `${label} ${runs.length}` : label} look={kind === "cancel" ? "danger" : undefined} runs={runs.map((run) => run.id)} ask={ask(runs.length === 1 ? "the run" : `${runs.length} runs`)} reason={runs.length === 0 ? reason : rows.length > MOST_AT_ONCE ? `At most ${MOST_AT_ONCE} runs at once.` : null} onDone={clear} />
          </span>
        );
      })}
      <button type="button" class="button plain small" onClick={clear}>Clear</button>
    </div>
  );
}
