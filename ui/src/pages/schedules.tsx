/** What runs when? */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Calendar, CalendarTime, CalendarWorkflow } from "../api.d.ts";
import { now } from "../clock.ts";
import { byDay, countsOf, type DayTimes, stateOf } from "../data/calendar.ts";
import { type Read, useLoad } from "../data/read.ts";
import { source } from "../data/session.ts";
import type { Source } from "../data/source.ts";
import { addDays, dayName, dayOf, daysFrom, daysInMonth, isDay, localTime, startOf } from "../data/zones.ts";
import { Action } from "../parts/action.tsx";
import { Empty } from "../parts/empty.tsx";
import { Choice, Search } from "../parts/form.tsx";
import { Glyph, Icon } from "../parts/icons.tsx";
import { Page, Section } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { changedQuery, currentPath, currentQuery, href, path, setQuery } from "../router.ts";
import { useShortcuts } from "../shortcuts.ts";
import { argument, duration, grouped, lookOf, type StateKind, utc } from "../words.ts";

type View = "week" | "month" | "list";

/** What the address says. */
interface Shown {
  view: View;
  /** The days that are shown. */
  days: readonly string[];
  /** Part of a workflow's name. */
  filter: string;
  isUtc: boolean;
}

const VIEWS: readonly View[] = ["week", "month", "list"];
const MOST_TIMES_IN_CELL = 3;
/** In small cells, what is neither well nor planned has its glyph: colour alone says nothing to some people. */
const NEEDS_GLYPH: ReadonlySet<StateKind> = new Set(["failed", "skipped", "running", "cancelled", "paused", "queued"]);

export default function Schedules(): JSX.Element {
  const shown = useShown();
  const { view, days, filter } = shown;
  const [first = "", last = ""] = [days[0], days.at(-1)];
  // Days differ by zone: half a day more on both sides has all of them.
  const read = useCalendar(`${addDays(first, -1)}T10:00:00Z`, `${addDays(last, 1)}T14:00:00Z`);
  const move = (steps: number): void => setQuery({ from: moved(shown, steps), day: null });
  useShortcuts([
    { keys: "[", does: "Earlier", group: "This page", run: () => move(-1) },
    { keys: "]", does: "Later", group: "This page", run: () => move(1) },
    { keys: "t", does: "Today", group: "This page", run: () => setQuery({ from: null, day: null }) },
    ...VIEWS.map((each, place) => ({ keys: String(place + 1), does: `Show the ${each}`, group: "This page", run: () => setQuery({ view: each, day: null }) })),
  ]);
  return (
    <Page
      title="Schedules"
      read={read}
      what="the calendar"
      command={`ork schedules calendar --from ${first} --to ${addDays(last, 1)}`}
      bar={
        <>
          <Choice label="View" value={view} onChange={(next) => setQuery({ view: next, day: null })} options={[["week", "Week"], ["month", "Month"], ["list", "List"]]} />
          <span class="steps">
            <button type="button" class="button" aria-label="Earlier" title="Earlier ([)" onClick={() => move(-1)}><Icon name="left" /></button>
            <button type="button" class="button" title="Today (t)" onClick={() => setQuery({ from: null, day: null })}>Today</button>
            <button type="button" class="button" aria-label="Later" title="Later (])" onClick={() => move(1)}><Icon name="right" /></button>
          </span>
          <b class="period">{periodName(shown)}</b>
          <span class="push" />
          <Search label="Workflow" placeholder="Workflow" value={filter} onInput={(text) => setQuery({ workflow: text })} />
          <Choice label="Time zone" value={shown.isUtc ? "utc" : ""} onChange={(zone) => setQuery({ zone })} options={[["", "Own zones"], ["utc", "UTC"]]} />
        </>
      }
    >
      {(calendar) => <Contents calendar={calendar} shown={shown} />}
    </Page>
  );
}

function Contents({ calendar, shown }: { calendar: Calendar; shown: Shown }): JSX.Element {
  const found = useMemo(() => calendar.workflows.filter((each) => each.workflow.includes(shown.filter)), [calendar, shown.filter]);
  if (calendar.workflows.length === 0) return <Empty title="No workflow has a schedule" icon="schedules" command="ork deploy workflow.yaml">Write <code>schedule: "0 2 * * *"</code> into a workflow file and deploy it.</Empty>;
  if (found.length === 0) return <Empty title="No workflow with a schedule fits" onClear={() => setQuery({ workflow: null })} />;
  return (
    <>
      {shown.view === "list" ? <List workflows={found} shown={shown} /> : <Grid workflows={found} shown={shown} />}
      {shown.view !== "list" && <Legend />}
      <Notes workflows={found} shown={shown} />
    </>
  );
}

// ── the grid: workflows and days ─────────────────────────────────────────────────────────────────

function Grid({ workflows, shown }: { workflows: readonly CalendarWorkflow[]; shown: Shown }): JSX.Element {
  const today = dayOf(now.value);
  const isMonth = shown.view === "month";
  return (
    <div class="calendar-scroll" tabIndex={0} role="region" aria-label="Calendar">
      <table class={`calendar is-${shown.view}`}>
        <thead>
          <tr>
            <th scope="col">Workflow</th>
            {shown.days.map((day) => <th scope="col" key={day} class={dayClass(day, today)}><abbr title={dayName(day, "long")}>{isMonth ? String(Number(day.slice(8))) : dayName(day, "short")}</abbr></th>)}
          </tr>
        </thead>
        <tbody>{workflows.map((each) => <Row key={each.workflow} of={each} shown={shown} today={today} />)}</tbody>
      </table>
    </div>
  );
}

function Row({ of, shown, today }: { of: CalendarWorkflow; shown: Shown; today: string }): JSX.Element {
  const zone = shown.isUtc ? "UTC" : of.timezone;
  const days = useMemo(() => byDay(of, zone), [of, zone]);
  const end = of.until === null ? null : localTime(Date.parse(of.until), zone).day;
  return (
    <tr class={of.enabled ? undefined : "is-off"}>
      <th scope="row">
        <a href={href(path("workflows", of.workflow))}>{of.workflow}</a>
        <span class="dim"><code>{of.cron}</code> {of.timezone}{!of.enabled && " · off"}</span>
        {of.problem && <span class="field-error">{of.problem}</span>}
      </th>
      {shown.days.map((day) => (
        <td key={day} class={dayClass(day, today)}>
          {end !== null && day >= end && !days.has(day) ? <span class="cut" title="Not shown: too many times. Choose a shorter range.">…</span> : <Cell of={of} day={day} found={days.get(day)} zone={zone} isSmall={shown.view === "month"} />}
        </td>
      ))}
    </tr>
  );
}

function Cell({ of, day, found, zone, isSmall }: { of: CalendarWorkflow; day: string; found: DayTimes | undefined; zone: string; isSmall: boolean }): JSX.Element | null {
  if (!found) return null;
  const { times, worst } = found;
  const look = lookAt(worst);
  const words = countsOf(times).map(([state, number]) => `${grouped(number)} ${lookAt(state).word}`).join(", ");
  const to = href(`${currentPath.value}${changedQuery(currentQuery.value, { view: "list", day, workflow: of.workflow })}`);
  const label = `${of.workflow}, ${dayName(day, "long")}: ${words}`;
  if (isSmall) {
    return <a class={`heat is-${look.kind}${worst === "planned" ? " is-planned" : ""}`} href={to} title={label} aria-label={label}>{NEEDS_GLYPH.has(look.kind) ? <Glyph kind={look.kind} /> : times.length > 1 && <span aria-hidden="true">{times.length > 999 ? "…" : times.length}</span>}</a>;
  }
  if (times.length > MOST_TIMES_IN_CELL) {
    return <a class="many" href={to} aria-label={label} title={label}>{countsOf(times).map(([state, number]) => <span class="fire" key={state}><Glyph kind={lookAt(state).kind} />{grouped(number)}</span>)}</a>;
  }
  return <>{times.map((each) => <Mark key={each.time} of={each} workflow={of.workflow} zone={zone} to={to} />)}</>;
}

function Mark({ of, workflow, zone, to }: { of: CalendarTime; workflow: string; zone: string; to: string }): JSX.Element {
  const { kind, word } = lookAt(stateOf(of));
  const { clock } = localTime(Date.parse(of.time), zone);
  const label = `${workflow} at ${clock} ${zone} (${utc(of.time)}): ${word}${of.run?.seconds != null ? `, ${duration(of.run.seconds)}` : ""}`;
  return <a class={`fire${of.state === "planned" ? " is-planned" : ""}`} href={of.run ? href(path("runs", of.run.id)) : to} title={label} aria-label={label}><Glyph kind={kind} />{clock}</a>;
}

function Legend(): JSX.Element {
  return <p class="legend dim" aria-hidden="true">{["success", "failed", "running", "missed", "due", "planned"].map((state) => <span class="state" key={state}><Glyph kind={lookAt(state).kind} />{lookAt(state).word}</span>)}</p>;
}

// ── the list ─────────────────────────────────────────────────────────────────────────────────────

interface Entry {
  workflow: CalendarWorkflow;
  time: CalendarTime;
  day: string;
  clock: string;
}

function List({ workflows, shown }: { workflows: readonly CalendarWorkflow[]; shown: Shown }): JSX.Element {
  const entries = useMemo(() => entriesOf(workflows, shown), [workflows, shown.days.join(), shown.isUtc]);
  if (entries.length === 0) return <Empty title="Nothing is scheduled in these days" icon="schedules" />;
  return <Table label="Times" rows={entries} columns={COLUMNS} rowKey={(each) => `${each.workflow.workflow} ${each.time.time}`} total={entries.length} />;
}

function entriesOf(workflows: readonly CalendarWorkflow[], shown: Shown): Entry[] {
  const days = new Set(shown.days);
  return workflows
    .flatMap((workflow) => workflow.times.map((time) => ({ workflow, time, ...localTime(Date.parse(time.time), shown.isUtc ? "UTC" : workflow.timezone) })))
    .filter((each) => days.has(each.day))
    .sort((a, b) => (a.time.time < b.time.time ? -1 : a.time.time > b.time.time ? 1 : 0));
}

const COLUMNS: readonly Column<Entry>[] = [
  { key: "local", head: "Time", width: "minmax(8.5rem, 10rem)", cell: (each) => <span class="number">{each.day} {each.clock}</span> },
  { key: "workflow", head: "Workflow", width: "minmax(6rem, 2fr)", cell: (each) => <a href={href(path("workflows", each.workflow.workflow))}>{each.workflow.workflow}</a> },
  { key: "zone", head: "Zone", width: "9rem", wide: true, cell: (each) => <span class="dim">{each.workflow.timezone}</span> },
  { key: "utc", head: "UTC", width: "10rem", wide: true, cell: (each) => <span class="number dim">{utc(each.time.time).slice(0, 16)}</span> },
  { key: "ago", head: "When", width: "6rem", wide: true, align: "right", cell: (each) => <Ago at={each.time.time} /> },
  { key: "state", head: "State", width: "minmax(6rem, 1fr)", phone: "glyph", cell: (each) => <EntryState of={each} /> },
  { key: "action", head: "Action", width: "6rem", wide: true, align: "right", cell: (each) => (each.time.state === "missed" ? <RunNow of={each} /> : null) },
];

function EntryState({ of }: { of: Entry }): JSX.Element {
  const { kind, word } = lookAt(stateOf(of.time));
  const text = <span class="state"><Glyph kind={kind} /><span class="state-word">{word}</span></span>;
  return of.time.run ? <a href={href(path("runs", of.time.run.id))}>{text}</a> : text;
}

/** A missed time gets its run by a backfill of that time alone. */
function RunNow({ of }: { of: Entry }): JSX.Element {
  const { workflow } = of.workflow;
  const at = new Date(of.time.time).toISOString();
  return (
    <Action
      label="Run now"
      small
      role="operator"
      command={`ork backfill ${argument(workflow)} --from ${at} --to ${at}`}
      run={() => source.act("POST /workflows/{name}/backfills", { name: workflow }, { from: at, to: at })}
      done={`${workflow}: the run of ${of.day} ${of.clock} is created`}
    />
  );
}

// ── notes ────────────────────────────────────────────────────────────────────────────────────────

function Notes({ workflows, shown }: { workflows: readonly CalendarWorkflow[]; shown: Shown }): JSX.Element | null {
  const days = new Set(shown.days);
  const notes = workflows.flatMap((each) => each.notes.filter((note) => days.has(note.local.slice(0, 10))).map((note) => ({ workflow: each.workflow, note })));
  const cut = workflows.filter((each) => each.partial);
  if (notes.length === 0 && cut.length === 0) return null;
  return (
    <Section title="Notes">
      <ul class="list">
        {notes.map(({ workflow, note }) => <li key={`${workflow} ${note.local}`}><Icon name="schedules" /><a href={href(path("workflows", workflow))}>{workflow}</a><span class="list-text is-wrapped">{note.text}</span></li>)}
        {cut.map((each) => <li key={each.workflow}><Icon name="warn" /><a href={href(path("workflows", each.workflow))}>{each.workflow}</a><span class="list-text is-wrapped">has too many times{each.until ? `: those from ${utc(each.until)} on are not shown` : "; some are not shown"}. Choose a shorter range.</span></li>)}
      </ul>
    </Section>
  );
}

// ── the address and the data ─────────────────────────────────────────────────────────────────────

function useShown(): Shown {
  const query = currentQuery.value;
  const wanted = query.get("view") as View | null;
  const view = wanted && VIEWS.includes(wanted) ? wanted : matchMedia("(width < 42rem)").matches ? "list" : "week";
  const today = dayOf(now.value);
  const [from, day] = [query.get("from"), query.get("day")];
  const near = isDay(from) ? from : isDay(day) ? day : today;
  const start = view === "list" ? near : startOf(view, near);
  const days = view === "list" && isDay(day) ? [day] : daysFrom(start, view === "month" ? daysInMonth(start) : 7);
  return { view, days, filter: query.get("workflow") ?? "", isUtc: query.get("zone") === "utc" };
}

function moved({ view, days }: Shown, steps: number): string {
  const first = days[0] ?? "";
  return view === "month" ? startOf("month", addDays(first, steps < 0 ? -1 : 31)) : addDays(first, 7 * steps);
}

function periodName({ view, days }: Shown): string {
  const [first = "", last = ""] = [days[0], days.at(-1)];
  if (view === "month") return dayName(first, "month");
  if (days.length === 1) return dayName(first, "long");
  return `${Number(first.slice(8))} ${first.slice(0, 7) === last.slice(0, 7) ? "" : `${dayName(first, "month").split(" ")[0]} `}– ${Number(last.slice(8))} ${dayName(last, "month")}`;
}

/** All pages of the calendar as one. It is read again when a run is created or ends. */
function useCalendar(from: string, to: string): Read<Calendar> {
  return useLoad(`calendar ${from} ${to}`, (source, signal) => readCalendar(source, from, to, signal), {
    live: (change) => change.kind === "reset" || change.event.run.trigger === "schedule" || change.event.run.trigger === "backfill",
    every: 60,
  });
}

/** Requests for the rest of schedules that fire very often. */
const MOST_FURTHER = 12;

async function readCalendar(source: Source, from: string, to: string, signal: AbortSignal): Promise<Calendar> {
  let page = await source.get("/calendar", { from, to }, { signal });
  const workflows = [...page.workflows];
  while (page.cursor !== null) {
    page = await source.get("/calendar", { from, to, cursor: page.cursor }, { signal });
    workflows.push(...page.workflows);
  }
  let left = MOST_FURTHER;
  for (const [place, found] of workflows.entries()) {
    let row = found;
    while (row.until !== null && left-- > 0) {
      const next = (await source.get("/calendar", { from: row.until, to, workflow: row.workflow }, { signal })).workflows[0];
      if (!next) break;
      row = { ...next, times: [...row.times, ...next.times], notes: [...row.notes, ...next.notes] };
    }
    workflows[place] = row;
  }
  return { ...page, workflows };
}

const OTHER_LOOKS: Readonly<Record<string, { kind: StateKind; word: string }>> = {
  missed: { kind: "skipped", word: "missed" },
  due: { kind: "queued", word: "due" },
  planned: { kind: "pending", word: "planned" },
};

function lookAt(state: string): { kind: StateKind; word: string } {
  return OTHER_LOOKS[state] ?? lookOf(state);
}

function dayClass(day: string, today: string): string | undefined {
  const weekday = new Date(`${day}T00:00:00Z`).getUTCDay();
  return [day === today ? "is-today" : "", weekday === 0 || weekday === 6 ? "is-weekend" : ""].filter(Boolean).join(" ") || undefined;
}
