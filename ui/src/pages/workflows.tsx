/** Which workflows are well? */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Overview, UpcomingSchedule, WorkflowHealth } from "../api.d.ts";
import { serverNow } from "../clock.ts";
import { scheduleInWords } from "../cron.ts";
import { useLoad, useRead } from "../data/read.ts";
import { changeInWords, DAY, isWell, trend } from "../health.ts";
import { RunBars } from "../parts/bars.tsx";
import { Empty, Partial } from "../parts/empty.tsx";
import { Choice, Search } from "../parts/form.tsx";
import { Missing, Page } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { currentQuery, href, path, setQuery } from "../router.ts";
import { duration, percent } from "../words.ts";
import { Controls } from "../workflow/controls.tsx";
import { Switch } from "../workflow/switch.tsx";

interface Listed extends WorkflowHealth {
  schedule: UpcomingSchedule | undefined;
  change: number | null;
}

const COLUMNS: readonly Column<Listed>[] = [
  { key: "name", head: "Workflow", width: "minmax(7rem, 2fr)", cell: (each) => <span title={each.name}>{each.name}</span>, sort: (a, b) => (a.name < b.name ? -1 : 1) },
  { key: "runs", head: "Last 20 runs", width: "minmax(7rem, 12rem)", cell: (each) => <RunBars runs={each.runs} label={`Last runs of ${each.name}`} /> },
  { key: "good", head: "Good", width: "4.2rem", align: "right", cell: (each) => <Good of={each.success_rate} />, sort: (a, b) => (a.success_rate ?? 2) - (b.success_rate ?? 2) },
  { key: "p50", head: "p50", width: "5rem", align: "right", wide: true, cell: (each) => <span class="number">{duration(each.p50)}</span>, sort: (a, b) => (a.p50 ?? -1) - (b.p50 ?? -1) },
  { key: "change", head: "Change", width: "5rem", wide: true, cell: (each) => <Change of={each.change} />, sort: (a, b) => (a.change ?? 0) - (b.change ?? 0) },
  { key: "schedule", head: "Schedule", width: "minmax(6rem, 2fr)", wide: true, cell: (each) => each.schedule && <span class={each.enabled ? undefined : "dim"} title={`${each.schedule.cron} ${each.schedule.timezone}`}>{scheduleInWords(each.schedule.cron, each.schedule.timezone)}</span> },
  { key: "next", head: "Next", width: "4.5rem", align: "right", wide: true, cell: (each) => <Next of={each} />, sort: (a, b) => nextOf(a) - nextOf(b) },
  { key: "last", head: "Last run", width: "5.5rem", align: "right", wide: true, cell: (each) => <Ago at={each.runs[0]?.created_at} />, sort: (a, b) => Date.parse(b.runs[0]?.created_at ?? "1970") - Date.parse(a.runs[0]?.created_at ?? "1970") },
  { key: "on", head: "On", width: "5.2rem", align: "right", wide: true, cell: (each) => each.schedule && <Switch name={each.name} isOn={each.enabled} /> },
];

const PAGE = 100;
const VIEWS: readonly (readonly [key: string, label: string, fits: (each: Listed) => boolean])[] = [
  ["", "All", () => true],
  ["unwell", "Not well", (each) => !isWell(each, serverNow() - DAY)],
  ["scheduled", "Scheduled", (each) => each.schedule !== undefined],
  ["off", "Off", (each) => !each.enabled],
];

export default function Workflows(): JSX.Element {
  const [pages, setPages] = useState(1);
  const text = currentQuery.value.get("q") ?? "";
  const view = currentQuery.value.get("show") ?? "";
  const read = useLoad(`workflows ${pages}`, async (from, signal) => {
    let found: Pick<Overview, "workflows" | "cursor"> = { workflows: [], cursor: null };
    for (let page = 0; page < pages && (page === 0 || found.cursor !== null); page++) {
      const next = await from.get("/overview", { limit: PAGE, cursor: found.cursor }, { signal });
      found = { workflows: [...found.workflows, ...next.workflows], cursor: next.cursor };
    }
    return found;
  }, { live: true });
  const schedules = useRead("/schedules", { next: 1, limit: 1000 }, { every: 300 });
  const bySchedule = new Map((schedules.data.value?.schedules ?? []).map((each) => [each.workflow, each]));
  const all = (read.data.value?.workflows ?? []).map((each): Listed => ({ ...each, schedule: bySchedule.get(each.name), change: trend(each.runs) }));
  return (
    <Page
      title="Workflows"
      read={read}
      live
      command="ork workflows"
      bar={
        <>
          <Search label="Name" placeholder="Filter by name" value={text} onInput={(q) => setQuery({ q })} />
          <Choice label="Show" value={view} onChange={(next) => setQuery({ show: next })} options={VIEWS.map(([key, label, fits]) => [key, <>{label} <span class="dim number">{all.filter(fits).length}</span></>] as const)} />
        </>
      }
    >
      {({ cursor }) => {
        const fits = VIEWS.find(([key]) => key === view)?.[2] ?? (() => true);
        const shown = all.filter((each) => each.name.toLowerCase().includes(text.toLowerCase()) && fits(each));
        if (all.length === 0) return <Empty title="No workflow is deployed yet" icon="workflows" command="ork deploy workflow.yaml" />;
        if (shown.length === 0) return <Empty title={view === "unwell" && !text ? "All workflows are well" : "No workflow fits these filters"} icon={view === "unwell" && !text ? "check" : "search"} onClear={() => setQuery({ q: null, show: null })} />;
        return (
          <>
            <Controls />
            <Missing read={schedules} what="schedules" />
            <div class="workflows"><Table label="Workflows" rows={shown} columns={COLUMNS} rowKey={(each) => each.name} href={(each) => href(path("workflows", each.name))} rowHeight={40} /></div>
            {cursor && <Partial shown={all.length} what="workflows by name" more={() => setPages(pages + 1)} />}
          </>
        );
      }}
    </Page>
  );
}

function Good({ of }: { of: number | null }): JSX.Element {
  return <span class={`number${of !== null && of < 0.9 ? " is-low" : ""}`}>{percent(of)}</span>;
}

/** How much longer or shorter it takes than before. */
export function Change({ of }: { of: number | null }): JSX.Element | null {
  const words = changeInWords(of);
  return words && <span class={`change number ${words.isSlower ? "is-slower" : "is-faster"}`} title={`The newer half of its last runs took ${words.isSlower ? "longer" : "less long"} than the older half`}>{words.text}</span>;
}

function Next({ of }: { of: Listed }): JSX.Element | null {
  if (!of.schedule) return null;
  return of.enabled ? <Ago at={of.schedule.next_fire ?? of.schedule.next[0]} /> : <span class="dim">off</span>;
}

function nextOf(each: Listed): number {
  return each.enabled && each.schedule ? Date.parse(each.schedule.next_fire ?? each.schedule.next[0] ?? "9999") : Infinity;
}
