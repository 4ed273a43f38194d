/** The past by day: where runs are missing or failed. A chosen range opens the form with its preview. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { BackfillTime, CalendarTime, RunMark, WorkflowWithDefinition } from "../api.d.ts";
import { serverNow } from "../clock.ts";
import { asProblem, isAbort, Problem } from "../data/problem.ts";
import { useLoad } from "../data/read.ts";
import { may, source } from "../data/session.ts";
import type { Source } from "../data/source.ts";
import { addDays, dayName, dayOf, isDay, localTime, startOf, startOfDay } from "../data/zones.ts";
import { byDay, type DayCount } from "../health.ts";
import { Empty } from "../parts/empty.tsx";
import { Icon } from "../parts/icons.tsx";
import { Loaded } from "../parts/page.tsx";
import { currentQuery, setQuery } from "../router.ts";
import { argument, count } from "../words.ts";

const WEEKS = 13;

export function Backfill({ workflow }: { workflow: WorkflowWithDefinition }): JSX.Element {
  const { name, schedule } = workflow;
  const zone = schedule?.timezone ?? "UTC";
  const today = localTime(serverNow(), zone).day;
  const first = startOf("week", addDays(today, -7 * (WEEKS - 1)));
  const given = useMemo(() => ({ workflow: name, from: new Date(startOfDay(first, zone)).toISOString(), to: new Date(serverNow()).toISOString() }), [name, first]);
  const read = useLoad(schedule ? `past ${name} ${given.from}` : null, (from, signal) => readTimes(from, given, signal));
  if (!schedule) return <Empty title="This workflow has no schedule" icon="schedules" command={`ork trigger ${argument(name)}`}>A backfill creates runs for past times of a schedule.</Empty>;
  return (
    <Loaded read={read} what="the days">
      {({ times, until }) => <Days days={byDay(first, daysUntil(first, today), zone, marksOf(times), times)} name={name} zone={zone} until={until} />}
    </Loaded>
  );
}

interface PastTimes {
  times: readonly CalendarTime[];
  /** From when on times are missing; null if none is. */
  until: string | null;
}

/** Every time of the schedule, also those before it was deployed, from a dry run of the backfill. Who must not backfill, or has
 * too many times for that, sees the times since it was deployed. */
async function readTimes(from: Source, given: { workflow: string; from: string; to: string }, signal: AbortSignal): Promise<PastTimes> {
  try {
    if (!may("operator")) throw new Problem("forbidden", "", "");
    const { plan } = await from.act("POST /workflows/{name}/backfills", { name: given.workflow }, { from: given.from, to: given.to, dry_run: true }, { signal, seconds: 30 });
    return { times: (plan ?? []).map(timeOf), until: null };
  } catch (error) {
    if (isAbort(error) || asProblem(error).isPassing) throw error;
    const found = (await from.get("/calendar", given, { signal })).workflows[0];
    return { times: found?.times ?? [], until: found?.partial ? found.until : null };
  }
}

function timeOf({ time, run, status }: BackfillTime): CalendarTime {
  const mark: RunMark | null = run === null || status === null ? null : { id: run, status, trigger: "schedule", created_at: time, scheduled_for: time, seconds: null };
  return { time, state: mark ? "run" : "missed", run: mark };
}

function daysUntil(first: string, last: string): number {
  return Math.round((Date.parse(last) - Date.parse(first)) / 86_400_000) + 1;
}

function marksOf(times: readonly CalendarTime[]): RunMark[] {
  return times.flatMap((each) => (each.run ? [each.run] : []));
}

function Days({ days, name, zone, until }: { days: readonly DayCount[]; name: string; zone: string; until: string | null }): JSX.Element {
  const [from, setFrom] = useState<string | null>(null);
  const query = currentQuery.value;
  const [first, last] = [query.get("first"), query.get("last")];
  const range = isDay(first) && isDay(last) ? [first, last] : null;
  /** The first click starts a range, the second ends it. */
  const choose = (day: string): void => {
    const [a, b] = from !== null && from <= day ? [from, day] : [day, from ?? day];
    setQuery({ first: a, last: b });
    setFrom(from === null ? day : null);
  };
  const weeks = Array.from({ length: Math.ceil(days.length / 7) }, (_, week) => days.slice(week * 7, week * 7 + 7));
  const chosen = range ? days.filter((each) => each.day >= (range[0] ?? "") && each.day <= (range[1] ?? "")) : [];
  const sum = (key: "runs" | "failed" | "missed"): number => chosen.reduce((total, each) => total + each[key], 0);
  const mayAct = may("operator");
  return (
    <div class="backfill">
      <div class="past-box">
        <div class="past" role="group" aria-label={`Days, in ${zone}`}>
          <div class="past-names" aria-hidden="true">{["Mon", "", "Wed", "", "Fri", "", "Sun"].map((each, place) => <span key={place}>{each}</span>)}</div>
          {weeks.map((week) => (
            <div class="past-week" key={week[0]?.day}>
              <span class="past-month" aria-hidden="true">{week.find((each) => each.day.endsWith("-01")) || week === weeks[0] ? dayName((week.find((each) => each.day.endsWith("-01")) ?? week[0])?.day ?? "", "month").slice(0, 3) : ""}</span>
              {week.map((each) => <DayButton of={each} key={each.day} isChosen={range !== null && each.day >= (range[0] ?? "") && each.day <= (range[1] ?? "")} choose={choose} />)}
            </div>
          ))}
        </div>
        <p class="past-key dim"><span class="past-day is-good" />good <span class="past-day is-bad" />failed <span class="past-day is-missing" />times without a run <span class="past-day" />no time</p>
      </div>
      <div class="backfill-side">
        {range ? (
          <>
            <h2>{range[0] === range[1] ? dayName(range[0] ?? "", "long") : `${dayName(range[0] ?? "", "long")} to ${dayName(range[1] ?? "", "long")}`}</h2>
            <p>{count(sum("runs"), "run")}{sum("failed") > 0 && `, ${sum("failed")} failed`}, <b>{count(sum("missed"), "time")}</b> without a run.</p>
          </>
        ) : (
          <>
            <h2>Choose days</h2>
            <p class="dim">One click chooses a day, a second one the days until there. Times without a run get one; no time gets a second one.</p>
          </>
        )}
        {source.canAct && (
          <button type="button" class="button primary" aria-disabled={mayAct ? undefined : true} title={mayAct ? `ork backfill ${argument(name)} --from ${range?.[0] ?? "DAY"} --to ${range?.[1] ?? "DAY"} --dry-run` : "This needs the role operator."} onClick={() => { if (mayAct) setQuery({ dialog: "backfill" }, { push: true }); }}>
            <Icon name="schedules" />Preview the backfill
          </button>
        )}
        <p class="dim note">The form shows every run before anything is created.</p>
        {until && <p class="dim note">It runs so often that days from {dayOf(Date.parse(until))} on are not counted here.</p>}
      </div>
    </div>
  );
}

function DayButton({ of, isChosen, choose }: { of: DayCount; isChosen: boolean; choose: (day: string) => void }): JSX.Element {
  const parts = [of.runs > 0 && count(of.runs, "run"), of.failed > 0 && `${of.failed} failed`, of.missed > 0 && `${count(of.missed, "time")} without a run`].filter(Boolean);
  const label = `${dayName(of.day, "long")}: ${parts.join(", ") || "no time"}`;
  const kind = of.missed > 0 ? "is-missing" : of.failed > 0 ? "is-bad" : of.runs > 0 ? "is-good" : "";
  return <button type="button" class={`past-day ${kind}`} aria-pressed={isChosen} title={label} aria-label={label} onClick={() => choose(of.day)} />;
}
