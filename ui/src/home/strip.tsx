/** The last 24 hours of each workflow by the hour, and the times to come. Workflows that are well are one line. */

import type { JSX } from "preact";
import type { Calendar, CalendarTime, Overview, WorkflowHealth } from "../api.d.ts";
import { HOUR, isWell, type Slot, slots, worst } from "../health.ts";
import { Partial } from "../parts/empty.tsx";
import { Glyph } from "../parts/icons.tsx";
import { Section } from "../parts/page.tsx";
import { Ago } from "../parts/time.tsx";
import { currentQuery, href, path, setQuery } from "../router.ts";
import { count, duration, lookOf, milliseconds, utcClock } from "../words.ts";

export const PAST_HOURS = 24;
export const FUTURE_HOURS = 6;
const RUNS_OF_EACH = 20;

export function Strip({ overview, calendar }: { overview: Overview; calendar: Calendar | undefined }): JSX.Element | null {
  const start = (Math.floor(milliseconds(overview.now) / HOUR) - PAST_HOURS + 1) * HOUR;
  const isAll = currentQuery.value.has("all");
  const times = new Map((calendar?.workflows ?? []).map((each) => [each.workflow, each.times]));
  const needs = overview.workflows.filter((each) => !isQuiet(each, times.get(each.name) ?? [], start));
  const others = overview.workflows.filter((each) => !needs.includes(each));
  const shown = isAll ? [...needs, ...others] : needs;
  if (overview.workflows.length === 0) return null;
  return (
    <Section title="Last 24 hours" aside={<a href={href("workflows")}>{overview.cursor ? "All workflows" : count(overview.workflows.length, "workflow")}</a>}>
      <div class="strip">
        {shown.length > 0 && <Hours start={start} />}
        {shown.map((each) => <Line of={each} times={times.get(each.name) ?? []} start={start} now={milliseconds(overview.now)} key={each.name} />)}
        {others.length > 0 && (
          <div class="strip-well">
            <Glyph kind="success" />
            <span>{isAll ? `${count(others.length, "workflow is", "workflows are")} well` : needs.length > 0 ? `${others.length} more ${others.length === 1 ? "is" : "are"} well` : `All ${others.length} are well`}</span>
            <button type="button" class="button plain small" onClick={() => setQuery({ all: isAll ? null : "1" })}>{isAll ? "Hide" : "Show"}</button>
          </div>
        )}
      </div>
      {overview.cursor && <Partial shown={overview.workflows.length} what="workflows by name" />}
    </Section>
  );
}

/** Nothing to look at: well, nothing runs, no time was missed. */
function isQuiet(each: WorkflowHealth, times: readonly CalendarTime[], start: number): boolean {
  return isWell(each, start) && !each.runs.some((run) => run.seconds === null) && !times.some((time) => time.state === "missed");
}

function Hours({ start }: { start: number }): JSX.Element {
  const hours = Array.from({ length: PAST_HOURS + FUTURE_HOURS }, (_, place) => new Date(start + place * HOUR).getUTCHours());
  return (
    <div class="strip-line strip-hours" aria-hidden="true">
      <span />
      <span class="strip-cells">
        {hours.map((hour, place) => hour % 4 === 0 && place !== PAST_HOURS - 1 && <span key={place} style={{ gridColumn: place + 1 }}>{String(hour).padStart(2, "0")}</span>)}
        <span class="strip-now-word" style={{ gridColumn: PAST_HOURS }}>now</span>
      </span>
    </div>
  );
}

interface LineProps {
  of: WorkflowHealth;
  times: readonly CalendarTime[];
  start: number;
  now: number;
}

function Line({ of, times, start, now }: LineProps): JSX.Element {
  const found = slots(start, PAST_HOURS + FUTURE_HOURS, HOUR, of.runs, times);
  const longest = Math.max(1e-9, ...of.runs.map((run) => run.seconds ?? 0));
  const oldest = of.runs.length === RUNS_OF_EACH ? milliseconds(of.runs.at(-1)?.created_at ?? 0) : 0;
  const unknown = Math.floor((oldest - start) / HOUR);
  return (
    <div class="strip-line">
      <a class="strip-name" href={href(path("workflows", of.name))}>{of.name}{!of.enabled && <span class="dim"> off</span>}</a>
      <ul class="strip-cells" aria-label={`${of.name}, the last 24 hours`}>
        {unknown > 0 && <li class="strip-unknown" style={{ gridColumn: `1 / ${unknown + 1}` }} title="Only the last 20 runs are shown here"><span class="only-read">Only the last 20 runs are shown here.</span></li>}
        {found.every((slot) => slot.runs.length === 0) && <LastFailure of={of} />}
        {found.map((slot, place) => <Cell slot={slot} place={place} workflow={of.name} longest={longest} now={now} key={place} />)}
      </ul>
    </div>
  );
}

/** Why a workflow that did not run is shown: its last run failed before. */
function LastFailure({ of }: { of: WorkflowHealth }): JSX.Element | null {
  const last = of.runs.find((run) => run.status === "failed");
  return last ? <li class="strip-before"><a href={href(path("runs", last.id))}><Glyph kind="failed" />last run failed <Ago at={last.created_at} /></a></li> : null;
}

function Cell({ slot, place, workflow, longest, now }: { slot: Slot; place: number; workflow: string; longest: number; now: number }): JSX.Element | null {
  const state = worst(slot.runs) ?? (slot.missed > 0 ? "missed" : null);
  if (state === null && slot.planned === 0) return null;
  const at = { gridColumn: place + 1 };
  const hour = utcClock(slot.start, now).slice(0, -3);
  if (state === null) return <li style={at} class="strip-planned" title={`${hour} UTC: ${count(slot.planned, "time")} planned`}><span class="only-read">{hour} UTC: planned</span></li>;
  if (state === "missed") return <li style={at} class="strip-missed" title={`${hour} UTC: missed ${count(slot.missed, "time")}`}><Glyph kind="pending" /><span class="only-read">{hour} UTC: missed</span></li>;
  const [run] = slot.runs;
  const text = slot.runs.length === 1 && run ? `${hour} UTC: ${lookOf(run.status).word}, ${duration(run.seconds)}` : `${hour} UTC: ${count(slot.runs.length, "run")}, ${countsOf(slot)}`;
  const to = slot.runs.length === 1 && run ? path("runs", run.id) : `runs?workflow=${encodeURIComponent(workflow)}&after=${new Date(slot.start).toISOString()}&before=${new Date(slot.start + HOUR).toISOString()}`;
  const height = Math.max(...slot.runs.map((each) => each.seconds ?? 0)) / longest;
  return (
    <li style={at}>
      <a class={`strip-cell is-${lookOf(state).kind}`} href={href(to)} title={text} aria-label={text}>
        <span class="strip-bar" style={{ height: `${20 + 80 * Math.sqrt(height)}%` }} />
        <Glyph kind={lookOf(state).kind} />
      </a>
    </li>
  );
}

function countsOf(slot: Slot): string {
  const counts = Map.groupBy(slot.runs, (run) => lookOf(run.status).word);
  return [...counts].map(([word, runs]) => `${runs.length} ${word}`).join(", ");
}
