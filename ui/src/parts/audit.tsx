/** Who changed what: newest first, filtered in the page. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { AuditEntry } from "../api.d.ts";
import { type Read, useLoad } from "../data/read.ts";
import { currentQuery, href, path, setQuery } from "../router.ts";
import { grouped, utc } from "../words.ts";
import { Drawer } from "./drawer.tsx";
import { Empty, Partial } from "./empty.tsx";
import { Search, Select } from "./form.tsx";
import { Facts, Page } from "./page.tsx";
import { type Column, Table } from "./table.tsx";
import { Ago, Clock } from "./time.tsx";

const PAGE = 1000;

interface Entries {
  entries: readonly AuditEntry[];
  hasMore: boolean;
}

export function Audit({ bar }: { bar: JSX.Element }): JSX.Element {
  const [pages, setPages] = useState(1);
  const read = useAudit(pages);
  const [text, area] = [currentQuery.value.get("q") ?? "", currentQuery.value.get("area") ?? ""];
  const all = read.data.value?.entries ?? [];
  const areas = useMemo(() => [...new Set(all.map((each) => areaOf(each.action)))].sort(), [all]);
  const shown = useMemo(() => all.filter((each) => (area === "" || areaOf(each.action) === area) && fits(each, text)), [all, text, area]);
  const open = all.find((each) => each.id === currentQuery.value.get("entry"));
  return (
    <Page
      title="Access"
      read={read}
      what="the audit"
      command="ork audit"
      bar={
        <>
          {bar}
          <Search label="Filter" placeholder="Who, what, which" value={text} onInput={(q) => setQuery({ q })} />
          <Select label="Area" hideLabel value={area} onChange={(next) => setQuery({ area: next })} options={[["", "all areas"], ...areas.map((each) => [each, each] as const)]} />
        </>
      }
    >
      {({ entries, hasMore }) => {
        if (entries.length === 0) return <Empty title="Nobody has changed anything yet" icon="access" />;
        return (
          <div class="beside">
            <div>
              {shown.length === 0 ? <Empty title={`None of the newest ${grouped(entries.length)} entries fits`} onClear={() => setQuery({ q: null, area: null })} /> : <Table label="Audit" rows={shown} columns={ENTRIES} rowKey={(each) => each.id} onOpen={(each) => setQuery({ entry: each.id }, { push: true })} selected={open?.id ?? null} />}
              {hasMore && <Partial shown={entries.length} what="entries" more={() => setPages(pages + 1)} />}
            </div>
            {open && <Entry of={open} />}
          </div>
        );
      }}
    </Page>
  );
}

const ENTRIES: readonly Column<AuditEntry>[] = [
  { key: "at", head: "Time (UTC)", width: "minmax(6rem, 10.5rem)", cell: (each) => <Clock at={each.at} /> },
  { key: "who", head: "Who", width: "minmax(4rem, 9rem)", cell: (each) => each.by },
  { key: "action", head: "Action", width: "minmax(6rem, 11rem)", cell: (each) => each.action },
  { key: "subject", head: "Subject", width: "minmax(8rem, 1fr)", wide: true, cell: (each) => each.subject },
  { key: "detail", head: "Detail", width: "minmax(6rem, 2fr)", wide: true, cell: (each) => <span class="dim">{detailOf(each)}</span> },
];

function Entry({ of }: { of: AuditEntry }): JSX.Element {
  return (
    <Drawer title={of.action} onClose={() => setQuery({ entry: null })}>
      <Facts of={[["When", <>{utc(of.at)} (<Ago at={of.at} />)</>], ["Who", of.by], ["Subject", <Subject of={of} />], ["Token", of.token ? <code>{of.token}</code> : "none: a person or program on the machine"], ["From", of.address ?? "–"]]} />
      {of.detail != null && <pre class="log audit-detail">{JSON.stringify(of.detail, null, 2)}</pre>}
    </Drawer>
  );
}

function Subject({ of }: { of: AuditEntry }): JSX.Element {
  const area = areaOf(of.action);
  if (area === "run") return <a class="link" href={href(path("runs", of.subject))}>{of.subject}</a>;
  if (area === "workflow" || area === "schedule") return <a class="link" href={href(path("workflows", of.subject))}>{of.subject}</a>;
  return <>{of.subject}</>;
}

/** `token.create` → `token`. */
function areaOf(action: string): string {
  return action.split(".")[0] ?? action;
}

function detailOf({ detail }: AuditEntry): string {
  if (detail == null) return "";
  return typeof detail === "object" && !Array.isArray(detail) ? Object.entries(detail).map(([key, value]) => `${key} ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ") : JSON.stringify(detail);
}

function fits(entry: AuditEntry, text: string): boolean {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const all = `${entry.by} ${entry.action} ${entry.subject} ${entry.address ?? ""} ${detailOf(entry)}`.toLowerCase();
  return words.every((word) => all.includes(word));
}

function useAudit(pages: number): Read<Entries> {
  return useLoad(`audit ${pages}`, async (source, signal) => {
    const entries: AuditEntry[] = [];
    let cursor: string | null = null;
    for (let number = 0; number < pages && (number === 0 || cursor !== null); number++) {
      const page: { entries: AuditEntry[]; cursor: string | null } = await source.get("/audit", { limit: PAGE, cursor }, { signal });
      entries.push(...page.entries);
      cursor = page.cursor;
    }
    return { entries, hasMore: cursor !== null };
  });
}
