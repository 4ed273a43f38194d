/** What runs when? */

import type { JSX } from "preact";
import type { UpcomingSchedule } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { Empty } from "../parts/empty.tsx";
import { Page } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago, Clock } from "../parts/time.tsx";
import { href, path } from "../router.ts";

const COLUMNS: readonly Column<UpcomingSchedule>[] = [
  { key: "workflow", head: "Workflow", width: "minmax(8rem, 2fr)", cell: (each) => each.workflow, sort: (a, b) => (a.workflow < b.workflow ? -1 : 1) },
  { key: "cron", head: "Schedule", width: "minmax(7rem, 1fr)", cell: (each) => <code>{each.cron}</code> },
  { key: "zone", head: "Time zone", width: "9rem", wide: true, cell: (each) => each.timezone },
  { key: "on", head: "On", width: "4rem", wide: true, cell: (each) => (each.enabled ? "on" : <span class="dim">off</span>) },
  { key: "at", head: "Next", width: "11rem", align: "right", wide: true, cell: (each) => <Clock at={each.next[0]} /> },
  { key: "in", head: "In", width: "6rem", align: "right", cell: (each) => <Ago at={each.next_fire ?? each.next[0]} />, sort: (a, b) => Date.parse(a.next[0] ?? "9999") - Date.parse(b.next[0] ?? "9999") },
];

export default function Schedules(): JSX.Element {
  const read = useRead("/schedules", { next: 3, limit: 1000 });
  return (
    <Page title="Schedules" read={read} command="ork schedules">
      {({ schedules }) =>
        schedules.length === 0 ? (
          <Empty title="No workflow has a schedule" icon="schedules" command="ork deploy workflow.yaml">Write <code>schedule: "0 2 * * *"</code> into a workflow file and deploy it.</Empty>
        ) : (
          <Table label="Schedules" rows={schedules} columns={COLUMNS} rowKey={(each) => each.workflow} href={(each) => href(path("workflows", each.workflow))} />
        )
      }
    </Page>
  );
}
