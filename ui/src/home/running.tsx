/** Runs that have not ended: how far, how long still, and why one waits. */

import type { JSX } from "preact";
import type { Explanation, Overview, ReasonCode, RunningRun } from "../api.d.ts";
import { now } from "../clock.ts";
import { useRead } from "../data/read.ts";
import type { Change } from "../data/stream.ts";
import { ProgressBar } from "../parts/bars.tsx";
import { Prose } from "../parts/command.tsx";
import { Section } from "../parts/page.tsx";
import { RunState } from "../parts/state.tsx";
import { Took } from "../parts/time.tsx";
import { href, path } from "../router.ts";
import { count, duration, rough, secondsOf, shortId } from "../words.ts";

const SHOWN = 10;
/** Runs with more tasks change often; why they wait is asked every few seconds instead of at each change. */
const LARGE = 300;

export function Running({ overview }: { overview: Overview }): JSX.Element | null {
  if (overview.running.length === 0) return null;
  const usual = new Map(overview.workflows.map((each) => [each.name, each.p50]));
  const rest = overview.running.length - SHOWN;
  return (
    <Section title="Running now" aside={<a href={href("runs?status=running")}>{overview.more_running ? "more than " : ""}{count(overview.running.length, "run")}</a>}>
      <ul class="list">
        {overview.running.slice(0, SHOWN).map((each) => <Row of={each} usual={usual.get(each.run.workflow) ?? null} key={each.run.id} />)}
        {rest > 0 && <li class="needs-more"><a href={href("runs?status=running")}>{rest}{overview.more_running ? " and more" : ""} others</a></li>}
      </ul>
    </Section>
  );
}

function Row({ of: { run, progress }, usual }: { of: RunningRun; usual: number | null }): JSX.Element {
  const isOurs = (change: Change): boolean => change.kind === "reset" || change.event.run.id === run.id;
  const isLarge = (progress?.total ?? LARGE + 1) > LARGE;
  const why = useRead("/runs/{run}/why", { run: run.id }, isLarge ? { every: 10 } : { live: isOurs }).data.value;
  const waits = why && waitingItem(why);
  return (
    <li class="going">
      <RunState run={run} quiet />
      <a class="going-name" href={href(path("runs", run.id))}><code>{shortId(run.id)}</code> {run.workflow}</a>
      <span class="going-progress">{progress && progress.total > 0 && <ProgressBar done={progress.done} total={progress.total} />}</span>
      <span class="going-text">{waits ? <Waits text={waits.text} until={waits.until} /> : run.started_at && <Left started={run.started_at} usual={usual} />}</span>
      <span class="going-end"><Took start={run.started_at ?? run.created_at} end={run.finished_at} /></span>
    </li>
  );
}

function Waits({ text, until }: { text: string; until: string | null }): JSX.Element {
  const left = until === null ? null : Math.max(0, (Date.parse(until) - now.value) / 1000);
  return <span title={text}><Prose text={text} />{left !== null && left < 3600 && <span class="dim"> · {rough(left)} left</span>}</span>;
}

/** From the median of the last runs: an honest word if it takes longer. */
function Left({ started, usual }: { started: string; usual: number | null }): JSX.Element | null {
  if (usual === null) return null;
  const left = usual - (secondsOf(started, null, now.value) ?? 0);
  return left > 0 ? <span class="dim" title={`The median of its last runs is ${duration(usual)}`}>about {rough(left)} left</span> : <span class="dim">longer than usual, which is {duration(usual)}</span>;
}

const WAITING: ReadonlySet<ReasonCode> = new Set(["approval", "limit", "concurrency", "rate", "retry", "control", "no_scheduler", "paused", "disk_full", "active_runs", "over_budget", "group", "set_aside", "damaged", "external_job", "being_cancelled"]);

/** The first reason to wait, without the commands at its end, which the run's page has; null if something is going on. */
export function waitingItem(why: Explanation): { text: string; until: string | null } | null {
  const item = why.items.find((each) => WAITING.has(each.code));
  return item ? { text: item.text.replace(/: `ork [\s\S]*$/, ""), until: item.until } : null;
}
