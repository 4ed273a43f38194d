/** Who may, and who did? */

import type { JSX } from "preact";
import type { AuditEntry, Token } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { Empty, Partial } from "../parts/empty.tsx";
import { Page } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { currentTab, type Tab, Tabs } from "../parts/tabs.tsx";
import { Ago, Clock } from "../parts/time.tsx";

const TABS: readonly Tab[] = [{ key: "tokens", label: "Tokens" }, { key: "audit", label: "Audit" }];

const TOKENS: readonly Column<Token>[] = [
  { key: "name", head: "Name", width: "minmax(8rem, 2fr)", cell: (each) => each.name },
  { key: "role", head: "Role", width: "7rem", cell: (each) => each.role },
  { key: "state", head: "State", width: "7rem", cell: (each) => (each.revoked_at ? <span class="dim">revoked</span> : "valid") },
  { key: "expires", head: "Expires", width: "7rem", align: "right", wide: true, cell: (each) => (each.expires_at ? <Ago at={each.expires_at} /> : "never") },
  { key: "used", head: "Last used", width: "7rem", align: "right", wide: true, cell: (each) => <Ago at={each.last_used_at} /> },
];

const ENTRIES: readonly Column<AuditEntry>[] = [
  { key: "at", head: "Time", width: "11rem", cell: (each) => <Clock at={each.at} /> },
  { key: "who", head: "Who", width: "9rem", cell: (each) => each.by },
  { key: "action", head: "Action", width: "10rem", cell: (each) => each.action },
  { key: "subject", head: "Subject", width: "minmax(8rem, 1fr)", wide: true, cell: (each) => each.subject },
];

export default function Access(): JSX.Element {
  const bar = <Tabs tabs={TABS} label="Access" />;
  return currentTab(TABS) === "audit" ? <Audit bar={bar} /> : <Tokens bar={bar} />;
}

function Tokens({ bar }: { bar: JSX.Element }): JSX.Element {
  const read = useRead("/tokens", {});
  return <Page title="Access" read={read} what="the tokens" bar={bar} command="ork token list">{({ tokens }) => <Table label="Tokens" rows={tokens} columns={TOKENS} rowKey={(each) => each.id} />}</Page>;
}

function Audit({ bar }: { bar: JSX.Element }): JSX.Element {
  const read = useRead("/audit", { limit: 200 });
  return (
    <Page title="Access" read={read} what="the audit" bar={bar} command="ork audit">
      {({ entries, cursor }) =>
        entries.length === 0 ? <Empty title="Nobody has changed anything yet" icon="access" /> : (
          <>
            <Table label="Audit" rows={entries} columns={ENTRIES} rowKey={(each) => each.id} />
            {cursor && <Partial shown={entries.length} what="entries" />}
          </>
        )
      }
    </Page>
  );
}
