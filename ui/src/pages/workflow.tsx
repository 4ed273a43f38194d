/** Is this workflow getting better or worse? */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { WorkflowWithDefinition } from "../api.d.ts";
import { now, serverNow } from "../clock.ts";
import { usePaletteActions } from "../commands.ts";
import { scheduleInWords } from "../cron.ts";
import { useRead } from "../data/read.ts";
import { may, source } from "../data/session.ts";
import { addDays, localTime, startOfDay } from "../data/zones.ts";
import { byDay, changeInWords, DAY, type DayCount, markOf, successRate } from "../health.ts";
import type { PageProps } from "../pages.ts";
import { showDialog } from "../parts/dialog.tsx";
import { Icon } from "../parts/icons.tsx";
import { Missing, Page } from "../parts/page.tsx";
import { currentTab, type Tab, Tabs } from "../parts/tabs.tsx";
import { Ago } from "../parts/time.tsx";
import { href, setQuery } from "../router.ts";
import { useShortcuts } from "../shortcuts.ts";
import { argument, count, duration, percent } from "../words.ts";
import { Backfill } from "../workflow/backfill.tsx";
import { Controls } from "../workflow/controls.tsx";
import { Durations } from "../workflow/durations.tsx";
import { DefinitionGraph } from "../workflow/graph.tsx";
import { Grid } from "../workflow/grid.tsx";
import { ScheduleTab } from "../workflow/schedule.tsx";
import { Switch } from "../workflow/switch.tsx";
import { Versions } from "../workflow/versions.tsx";

const TABS: readonly Tab[] = [
  { key: "grid", label: "Grid" },
  { key: "graph", label: "Graph" },
  { key: "durations", label: "Durations" },
  { key: "schedule", label: "Schedule" },
  { key: "backfill", label: "Backfill" },
  { key: "versions", label: "Versions" },
];
const DAYS = 30;
const MOST_RUNS = 500;

export default function WorkflowPage({ params }: PageProps): JSX.Element {
  const name = params["name"] ?? "";
  const read = useRead("/workflows/{name}", { name });
  const workflow = read.data.value;
  useShortcuts(TABS.map((tab, place) => ({ keys: String(place + 1), does: String(tab.label), group: "This workflow", run: () => setQuery({ view: place === 0 ? null : tab.key, task: null }) })));
  usePaletteActions([
    { label: `Run ${name}`, words: "start trigger", run: () => showDialog("run") },
    { label: `Backfill ${name}`, run: () => showDialog("backfill") },
  ]);
  return (
    <Page
      title={name}
      heading={<>{name}{workflow && <Timing workflow={workflow} />}</>}
      crumbs={[["workflows", "Workflows"]]}
      read={read}
      what="the workflow"
      gone={`There is no workflow ${name}`}
      command={`ork workflow show ${argument(name)}`}
      live
      actions={workflow && source.canAct && <Actions workflow={workflow} reload={read.reload} />}
      bar={<Tabs tabs={TABS} label="Views" />}
    >
      {(found) => (
        <>
          <Controls />
          <Month workflow={found} />
          <View name={name} workflow={found} reload={read.reload} />
        </>
      )}
    </Page>
  );
}

function View({ name, workflow, reload }: { name: string; workflow: WorkflowWithDefinition; reload: () => void }): JSX.Element {
  switch (currentTab(TABS)) {
    case "graph": return <DefinitionGraph workflow={workflow} />;
    case "durations": return <Durations name={name} />;
    case "schedule": return <ScheduleTab workflow={workflow} reload={reload} />;
    case "backfill": return <Backfill workflow={workflow} />;
    case "versions": return <Versions name={name} current={workflow.version} />;
    default: return <Grid name={name} />;
  }
}

/** `on · every day at 02:00 Berlin · next in 11h`. */
function Timing({ workflow }: { workflow: WorkflowWithDefinition }): JSX.Element | null {
  const { schedule, enabled } = workflow;
  const upcoming = useRead("/schedules", schedule ? { next: 1, limit: 1000 } : null).data.value?.schedules.find((each) => each.workflow === workflow.name);
  if (!schedule) return <span class="timing">no schedule</span>;
  const next = upcoming?.next_fire ?? upcoming?.next[0];
  return (
    <span class="timing">
      <span class={`on-off${enabled ? " is-on" : ""}`}>{enabled ? "on" : "off"}</span>
      <span title={`${schedule.cron} ${schedule.timezone}`}>{scheduleInWords(schedule.cron, schedule.timezone)}</span>
      {enabled && next && Date.parse(next) > now.value && <span>next <Ago at={next} /></span>}
    </span>
  );
}

function Actions({ workflow, reload }: { workflow: WorkflowWithDefinition; reload: () => void }): JSX.Element {
  const mayRun = may("operator");
  return (
    <>
      {workflow.schedule && <Switch name={workflow.name} isOn={workflow.enabled} onDone={reload} small={false} />}
      <button type="button" class="button primary" aria-disabled={mayRun ? undefined : true} title={mayRun ? `ork trigger ${argument(workflow.name)}` : "This needs the role operator."} onClick={() => { if (mayRun) showDialog("run"); }}>
        <Icon name="play" />Run
      </button>
    </>
  );
}

/** The last 30 days: a bar for each, how many runs were good, and whether they take longer than the week before. */
function Month({ workflow }: { workflow: WorkflowWithDefinition }): JSX.Element | null {
  const zone = workflow.schedule?.timezone ?? "UTC";
  const after = useMemo(() => new Date(serverNow() - DAYS * DAY).toISOString(), []);
  const read = useRead("/runs", { workflow: workflow.name, created_after: after, limit: MOST_RUNS });
  const spread = useRead("/workflows/{name}/durations", { name: workflow.name }).data.value?.runs;
  const page = read.data.value;
  if (!page || page.runs.length === 0) return <Missing read={read} what={`the last ${DAYS} days`} />;
  const marks = page.runs.map(markOf);
  const days = byDay(addDays(localTime(serverNow(), zone).day, 1 - DAYS), DAYS, zone, marks, []);
  const change = changeInWords(spread?.change);
  return (
    <div class="month">
      <span class="dim">{DAYS} days</span>
      <DayBars days={days} workflow={workflow.name} zone={zone} />
      <span><b>{percent(successRate(marks))}</b> good <span class="dim">of {page.cursor ? `the last ${MOST_RUNS} runs` : count(marks.length, "run")}</span></span>
      {spread?.p50 != null && (
        <span>
          p50 <b class="number">{duration(spread.p50)}</b>
          {spread.p50_before !== null && <span class="dim">, was {duration(spread.p50_before)}</span>}
          {change && <span class={`change ${change.isSlower ? "is-slower" : "is-faster"}`}> {change.text}</span>}
        </span>
      )}
    </div>
  );
}

function DayBars({ days, workflow, zone }: { days: readonly DayCount[]; workflow: string; zone: string }): JSX.Element {
  const start = (day: string): string => new Date(startOfDay(day, zone)).toISOString();
  const most = Math.max(1, ...days.map((each) => each.runs));
  return (
    <ul class="day-bars" aria-label="Runs of the last 30 days">
      {days.map((each) => {
        const text = `${each.day}: ${count(each.runs, "run")}${each.failed ? `, ${each.failed} failed` : ""}`;
        if (each.runs === 0) return <li key={each.day} title={text}><span class="only-read">{text}</span></li>;
        return (
          <li key={each.day}>
            <a href={href(`runs?workflow=${encodeURIComponent(workflow)}&after=${start(each.day)}&before=${start(addDays(each.day, 1))}`)} title={text} aria-label={text} style={{ height: `${15 + 85 * (each.runs / most)}%` }}>
              {each.failed > 0 && <span class="is-failed" style={{ flexGrow: each.failed }} />}
              {each.runs > each.failed && <span class={each.succeeded > 0 ? "is-success" : "is-pending"} style={{ flexGrow: each.runs - each.failed }} />}
            </a>
          </li>
        );
      })}
    </ul>
  );
}

