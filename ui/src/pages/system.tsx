/** Is Ork itself well? */

import type { JSX } from "preact";
import type { InstallationStatus, LimitUse, Scheduler } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { ProgressBar } from "../parts/bars.tsx";
import { Empty } from "../parts/empty.tsx";
import { Facts, Page, Section } from "../parts/page.tsx";
import { Counts } from "../parts/state.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { duration } from "../words.ts";

const SCHEDULERS: readonly Column<Scheduler>[] = [
  { key: "identity", head: "Scheduler", width: "minmax(9rem, 2fr)", cell: (each) => each.identity },
  { key: "kind", head: "Kind", width: "7rem", wide: true, cell: (each) => each.kind },
  { key: "liveness", head: "State", width: "7rem", cell: (each) => each.liveness },
  { key: "runs", head: "Runs", width: "5rem", align: "right", cell: (each) => each.runs },
  { key: "lease", head: "Lease", width: "6rem", align: "right", wide: true, cell: (each) => duration(each.lease_seconds_left) },
  { key: "started", head: "Started", width: "6.5rem", align: "right", wide: true, cell: (each) => <Ago at={each.started_at} /> },
];

const LIMITS: readonly Column<LimitUse>[] = [
  { key: "name", head: "Limit", width: "minmax(8rem, 1fr)", cell: (each) => each.name },
  { key: "used", head: "Used", width: "minmax(9rem, 1fr)", cell: (each) => <ProgressBar done={each.used} total={each.slots} /> },
];

export default function System(): JSX.Element {
  const read = useRead("/status", {}, { every: 15 });
  return (
    <Page title="System" read={read} what="the status" command="ork status">
      {(status) => <Contents status={status} />}
    </Page>
  );
}

function Contents({ status }: { status: InstallationStatus }): JSX.Element {
  return (
    <>
      <Facts of={[["Unfinished runs", Object.values(status.unfinished).some(Boolean) ? <Counts of={status.unfinished} /> : "none"], ["Waiting tasks", status.waiting], ["Alerts not sent", status.unsent_alerts.length], ["Disk", status.is_disk_full ? "full" : "ok"]]} />
      <Section title="Schedulers">
        {status.schedulers.length === 0 ? <Empty title="No scheduler is running" icon="system" command="ork serve" /> : <Table label="Schedulers" rows={status.schedulers} columns={SCHEDULERS} rowKey={(each) => each.id} />}
      </Section>
      {status.limits.length > 0 && <Section title="Limits"><Table label="Limits" rows={status.limits} columns={LIMITS} rowKey={(each) => each.name} sortParam="limits" /></Section>}
    </>
  );
}
