/** Which workflows are well? */

import type { JSX } from "preact";
import type { WorkflowHealth } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { RunBars } from "../parts/bars.tsx";
import { Empty, Partial } from "../parts/empty.tsx";
import { Search } from "../parts/form.tsx";
import { Page } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { currentQuery, href, path, setQuery } from "../router.ts";
import { duration, percent } from "../words.ts";

const COLUMNS: readonly Column<WorkflowHealth>[] = [
  { key: "name", head: "Workflow", width: "minmax(8rem, 2fr)", cell: (each) => each.name, sort: (a, b) => (a.name < b.name ? -1 : 1) },
  { key: "last", head: "Last run", width: "8rem", phone: "glyph", cell: (each) => (each.runs[0] ? <State of={each.runs[0].status} /> : <span class="dim">–</span>) },
  { key: "runs", head: "Last 20 runs", width: "12.5rem", wide: true, cell: (each) => <RunBars runs={each.runs} label={`Last runs of ${each.name}`} /> },
  { key: "good", head: "Good", width: "5rem", align: "right", wide: true, cell: (each) => percent(each.success_rate), sort: (a, b) => (a.success_rate ?? 2) - (b.success_rate ?? 2) },
  { key: "p50", head: "p50", width: "6rem", align: "right", wide: true, cell: (each) => <span class="number">{duration(each.p50)}</span>, sort: (a, b) => (a.p50 ?? 0) - (b.p50 ?? 0) },
  { key: "when", head: "When", width: "6.5rem", align: "right", cell: (each) => <Ago at={each.runs[0]?.created_at} /> },
];

export default function Workflows(): JSX.Element {
  const text = currentQuery.value.get("q") ?? "";
  const read = useRead("/overview", { limit: 200 }, { live: true });
  return (
    <Page title="Workflows" read={read} live command="ork workflows" bar={<Search label="Name" placeholder="Filter by name" value={text} onInput={(q) => setQuery({ q })} />}>
      {({ workflows, cursor }) => {
        const shown = workflows.filter((each) => each.name.toLowerCase().includes(text.toLowerCase()));
        if (workflows.length === 0) return <Empty title="No workflow is deployed yet" icon="workflows" command="ork deploy workflow.yaml" />;
        if (shown.length === 0) return <Empty title={`No workflow has “${text}” in its name`} onClear={() => setQuery({ q: null })} />;
        return (
          <>
            <Table label="Workflows" rows={shown} columns={COLUMNS} rowKey={(each) => each.name} href={(each) => href(path("workflows", each.name))} />
            {cursor && <Partial shown={workflows.length} what="workflows" />}
          </>
        );
      }}
    </Page>
  );
}
