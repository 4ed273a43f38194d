/** What happened, and what next? */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { RunSummary } from "../api.d.ts";
import { decode, type TaskRow } from "../data/columns.ts";
import { useLoad, useRead } from "../data/read.ts";
import { source } from "../data/session.ts";
import type { Change } from "../data/stream.ts";
import type { PageProps } from "../pages.ts";
import { Action } from "../parts/action.tsx";
import { ProgressBar, StateBar } from "../parts/bars.tsx";
import { Copyable } from "../parts/command.tsx";
import { Loaded, Page, Section } from "../parts/page.tsx";
import { Counts, RunState, State } from "../parts/state.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago, Took } from "../parts/time.tsx";
import { href, path } from "../router.ts";
import { duration, isFinal, rough, shortId, taskName } from "../words.ts";

export default function RunPage({ params }: PageProps): JSX.Element {
  const id = params["id"] ?? "";
  const isOurs = (change: Change): boolean => change.kind === "reset" || change.event.run.id.startsWith(id);
  const summary = useRead("/runs/{run}/summary", { run: id }, { live: isOurs });
  const run = summary.data.value?.run;
  return (
    <Page
      title={run ? `${run.workflow} ${shortId(id)}` : `Run ${shortId(id)}`}
      heading={run && <><RunState run={run} /> <span>{run.workflow}</span> <Copyable text={run.id} shown={shortId(run.id)} /></>}
      crumbs={run ? [["runs", "Runs"], [path("workflows", run.workflow), run.workflow]] : [["runs", "Runs"]]}
      actions={run && <Actions run={run} />}
      read={summary}
      what="the run"
      gone={`There is no run ${id}, or retention has removed it`}
      command={`ork show ${shortId(id)}`}
      live
    >
      {(found) => <Contents summary={found} id={id} isOurs={isOurs} />}
    </Page>
  );
}

function Actions({ run }: { run: RunSummary["run"] }): JSX.Element {
  const short = shortId(run.id);
  const isEnded = isFinal(run.status);
  return (
    <>
      <Action label="Retry failed" icon="retry" role="operator" command={`ork retry ${short}`} reason={run.status === "failed" || run.status === "cancelled" ? null : "Nothing to retry: the run has not failed."} run={() => source.act("POST /runs/{run}/retry", { run: run.id }, {})} done={`Retrying ${short}`} />
      <Action label="Cancel" icon="stop" kind="danger" role="operator" command={`ork cancel ${short}`} ask="Running tasks are stopped; tasks that wait are not started." reason={isEnded ? "The run has ended." : null} run={() => source.act("POST /runs/{run}/cancel", { run: run.id }, {})} done={`Cancelling ${short}`} />
    </>
  );
}

function Contents({ summary, id, isOurs }: { summary: RunSummary; id: string; isOurs: (change: Change) => boolean }): JSX.Element {
  const { run, progress, estimate, failures } = summary;
  return (
    <>
      <div class="summary-line">
        <Counts of={summary.counts} />
        <StateBar counts={summary.counts} />
        {!isFinal(run.status) && <ProgressBar done={progress.done} total={progress.total} />}
        <span class="dim">took <Took start={run.started_at} end={run.finished_at} /> · created <Ago at={run.created_at} />{estimate && ` · about ${rough(estimate.seconds_left)} left`}</span>
      </div>
      {failures.length > 0 && (
        <Section title="Failures">
          <ul class="list">
            {failures.map((each) => (
              <li key={`${each.name} ${each.index}`}>
                <State of="failed" quiet />
                <a href={href(path("runs", run.id, "tasks", each.name, each.index ?? 0, each.attempt))}>{taskName(each.name, each.index)}</a>
                <span class="list-text">{each.failure?.message}</span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Tasks id={id} isOurs={isOurs} />
    </>
  );
}

function Tasks({ id, isOurs }: { id: string; isOurs: (change: Change) => boolean }): JSX.Element {
  const read = useLoad(`columns ${id}`, async (from, signal) => decode(await from.get("/runs/{run}/columns", { run: id }, { signal, seconds: 30 })), { live: isOurs });
  const columns = useMemo((): Column<TaskRow>[] => [
    { key: "task", head: "Task", width: "minmax(10rem, 3fr)", cell: (row) => taskName(row.name, row.index) },
    { key: "status", head: "State", width: "8rem", phone: "glyph", cell: (row) => <State of={row.status} /> },
    { key: "attempt", head: "Try", width: "4rem", align: "right", wide: true, cell: (row) => row.attempt || "–" },
    { key: "wait", head: "Waited", width: "6rem", align: "right", wide: true, cell: (row) => duration(row.wait === null ? null : row.wait / 1000) },
    { key: "ran", head: "Ran", width: "6rem", align: "right", cell: (row) => duration(row.ran === null ? null : row.ran / 1000) },
  ], []);
  return (
    <Section title="Tasks">
      <Loaded read={read} what="the tasks">
        {({ tasks }) => <Table label="Tasks" rows={tasks} columns={columns} rowKey={(row) => String(row.place)} href={(row) => href(path("runs", id, "tasks", row.name, row.index ?? 0, Math.max(1, row.attempt)))} />}
      </Loaded>
    </Section>
  );
}
