/** Where is that run? */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Run, RunStatus } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { Empty, Partial } from "../parts/empty.tsx";
import { Choice, Search } from "../parts/form.tsx";
import { Page } from "../parts/page.tsx";
import { RunState } from "../parts/state.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago, Took } from "../parts/time.tsx";
import { currentQuery, href, path, setQuery } from "../router.ts";
import { argument, shortId } from "../words.ts";

const STATUSES = ["failed", "running", "pending", "paused", "success", "cancelled"] as const;

const COLUMNS: readonly Column<Run>[] = [
  { key: "id", head: "Run", width: "6rem", phone: "4rem", cell: (run) => <code>{shortId(run.id)}</code> },
  { key: "status", head: "State", width: "8rem", phone: "glyph", cell: (run) => <RunState run={run} /> },
  { key: "workflow", head: "Workflow", width: "minmax(8rem, 2fr)", cell: (run) => run.workflow },
  { key: "trigger", head: "Trigger", width: "8rem", wide: true, cell: (run) => <span class="dim">{run.trigger}</span> },
  { key: "error", head: "Error", width: "minmax(6rem, 3fr)", wide: true, cell: (run) => <span class="dim">{run.error}</span> },
  { key: "took", head: "Took", width: "6rem", align: "right", wide: true, cell: (run) => <Took start={run.started_at} end={run.finished_at} /> },
  { key: "created", head: "Created", width: "6.5rem", phone: "4.5rem", align: "right", cell: (run) => <Ago at={run.created_at} /> },
];

export default function Runs(): JSX.Element {
  const [limit, setLimit] = useState(100);
  const status = currentQuery.value.get("status") ?? "";
  const workflow = currentQuery.value.get("workflow") ?? "";
  const given = { limit, workflow: workflow || null, status: status ? [status as RunStatus] : null };
  const read = useRead("/runs", given, { live: true, keep: true });
  const isFiltered = status !== "" || workflow !== "";
  return (
    <Page
      title="Runs"
      read={read}
      live
      command={`ork runs${workflow ? ` --workflow ${argument(workflow)}` : ""}${status ? ` --status ${status}` : ""}`}
      bar={
        <>
          <Search label="Workflow" placeholder="Workflow" value={workflow} onInput={(text) => setQuery({ workflow: text })} />
          <Choice label="State" value={status} onChange={(next) => setQuery({ status: next })} options={[["", "All"], ...STATUSES.map((each) => [each, each] as const)]} />
        </>
      }
    >
      {({ runs, cursor }) =>
        runs.length === 0 ? (
          isFiltered ? <Empty title="No run fits these filters" onClear={() => setQuery({ status: null, workflow: null })} /> : <Empty title="No runs yet" icon="runs" command="ork run workflow.yaml" />
        ) : (
          <>
            <Table label="Runs" rows={runs} columns={COLUMNS} rowKey={(run) => run.id} href={(run) => href(path("runs", run.id))} />
            {cursor && <Partial shown={runs.length} what="runs" more={limit < 1000 ? () => setLimit(Math.min(1000, limit * 3)) : undefined} />}
          </>
        )
      }
    </Page>
  );
}
