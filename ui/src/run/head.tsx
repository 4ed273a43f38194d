/** The state of a run in a few lines: why it failed or waits, how far it is, what made it slow. */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { ReasonCode, RunSummary, TaskFailure } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { source } from "../data/session.ts";
import type { Change } from "../data/stream.ts";
import { Action } from "../parts/action.tsx";
import { ProgressBar, StateBar } from "../parts/bars.tsx";
import { Prose } from "../parts/command.tsx";
import { Missing } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { Ago, Took } from "../parts/time.tsx";
import { changedQuery, currentPath, currentQuery, href, path } from "../router.ts";
import { argument, count, duration, grouped, isFinal, lookOf, rough, shortId, taskName } from "../words.ts";
import { type FailureGroup, groupFailures } from "./failures.ts";
import { selectLink } from "./model.ts";

type IsOurs = (change: Change) => boolean;

export function RunHead({ summary, isOurs }: { summary: RunSummary; isOurs: IsOurs }): JSX.Element {
  const { run } = summary;
  const isEnded = isFinal(run.status);
  return (
    <div class="run-head">
      {(summary.failures.length > 0 || run.error) && <Failures summary={summary} isOurs={isOurs} />}
      {!isEnded && <Waits run={run.id} isOurs={isOurs} />}
      <div class="run-line">
        <Tally summary={summary} />
        {isEnded ? <StateBar counts={summary.counts} /> : <ProgressBar done={summary.progress.done} total={summary.progress.total} failed={summary.counts.failed ?? 0} />}
        <span class="dim run-times">
          <span>{isEnded ? "took" : "runs for"} <b><Took start={run.started_at} end={run.finished_at} /></b></span>
          {!isEnded && <Left summary={summary} />}
          <span>created <Ago at={run.created_at} />, {WORDS[run.trigger] ?? run.trigger}{run.round > 1 && `, round ${run.round}`}</span>
        </span>
      </div>
      <CriticalPath summary={summary} />
    </div>
  );
}

const WORDS: Record<string, string> = { manual: "by hand", schedule: "by its schedule", backfill: "by a backfill", event: "by an event" };
const ORDER = ["failed", "running", "dispatched", "pending", "skipped", "cancelled", "success"];

/** The link that shows only tasks with a state. */
function stateLink(state: string | null, view: string | null = "table"): string {
  return href(`${currentPath.value}${changedQuery(currentQuery.value, { state, view })}`);
}

/** `1,204 tasks ✓ 1,160 ✗ 41`: each number is a link to its tasks. */
function Tally({ summary }: { summary: RunSummary }): JSX.Element {
  const { counts, progress } = summary;
  return (
    <span class="tally">
      <b>{count(progress.total, "task")}</b>
      {ORDER.filter((state) => counts[state as keyof typeof counts]).map((state) => (
        <a key={state} href={stateLink(lookOf(state).kind)} title={`Show tasks that are ${lookOf(state).word}`}>
          <State of={state} quiet /> <b class="number">{grouped(counts[state as keyof typeof counts] ?? 0)}</b> <span class="dim">{lookOf(state).word}</span>
        </a>
      ))}
    </span>
  );
}

/** What is left, from the history of the workflow, and from how much of it. */
function Left({ summary }: { summary: RunSummary }): JSX.Element | null {
  const { estimate, run } = summary;
  if (run.status === "paused" || !run.started_at) return null;
  if (!estimate || estimate.runs === 0) return <span>no estimate: no earlier run succeeded</span>;
  const usual = estimate.median === null ? null : `p50 of ${count(estimate.runs, "run")}: ${duration(estimate.median)}`;
  if (estimate.seconds_left <= 0) return <span>longer than usual{usual && ` (${usual})`}</span>;
  return <span>about <b>{rough(estimate.seconds_left)}</b> left{usual && ` (${usual})`}</span>;
}

const FIRST = 3;

/** The failures, grouped, the largest group first. */
function Failures({ summary, isOurs }: { summary: RunSummary; isOurs: IsOurs }): JSX.Element {
  const { run, more_failures: hasMore } = summary;
  const [isOpen, setOpen] = useState(false);
  const rest = useRead("/runs/{run}/tasks", hasMore ? { run: run.id, status: ["failed"], limit: 1000 } : null, { live: isOurs });
  const all = hasMore ? rest.data.value?.tasks.filter((task) => task.instances === null) : undefined;
  const failures: readonly TaskFailure[] = all ?? summary.failures;
  const groups = groupFailures(failures);
  const isCut = hasMore && (all === undefined || rest.data.value?.cursor !== null);
  const shown = isOpen ? groups : groups.slice(0, FIRST);
  return (
    <div class="verdict" role="group" aria-label="Failures">
      {groups.length === 0 && run.error && <div class="verdict-row"><State of={run.status} quiet /><span class="verdict-text">{run.error}</span></div>}
      {shown.map((group) => <FailureRow key={`${group.failures[0]?.name} ${group.message}`} run={run.id} group={group} isCut={isCut} />)}
      {groups.length > FIRST && <button type="button" class="button plain small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{isOpen ? "Show fewer" : `${count(groups.length - FIRST, "other failure")}`}</button>}
    </div>
  );
}

function FailureRow({ run, group, isCut }: { run: string; group: FailureGroup; isCut: boolean }): JSX.Element {
  const [first] = group.failures;
  if (!first) return <></>;
  const number = group.failures.length;
  const task = (failure: TaskFailure): JSX.Element => (
    <a key={failure.index} href={selectLink(failure.name, failure.index)}>{taskName(failure.name, failure.index)}</a>
  );
  return (
    <div class="verdict-row">
      <State of="failed" quiet />
      <span class="verdict-text">
        <span class="verdict-tasks">{task(first)}{group.failures.slice(1, 3).map((failure) => <span key={failure.index} class="wide-only">, {task(failure)}</span>)}</span>
        <span class="verdict-message">{group.message}</span>
      </span>
      {number > 1 && <a class="times" href={href(`${currentPath.value}${changedQuery(currentQuery.value, { state: "failed", find: first.name, view: "table" })}`)} title="Show them all in the table">× {isCut ? "at least " : ""}{grouped(number)}</a>}
      {number === 1 && first.attempt > 1 && <span class="dim">attempt {first.attempt}</span>}
      <a class="button small" href={href(path("runs", run, "tasks", first.name, first.index ?? 0, Math.max(1, first.attempt)))}>Log</a>
    </div>
  );
}

/** Reasons that the rest of the page shows already: what runs, what failed, what stands before what. */
const SEEN: ReadonlySet<ReasonCode> = new Set(["running", "success", "failed", "skipped", "cancelled", "upstream", "instances", "more"]);

/** What a run that has not ended waits for; approvals can be given here. */
function Waits({ run, isOurs }: { run: string; isOurs: IsOurs }): JSX.Element | null {
  const read = useRead("/runs/{run}/why", { run }, { live: isOurs, pause: 3 });
  const items = (read.data.value?.items ?? []).filter((item) => !SEEN.has(item.code));
  if (items.length === 0) return <Missing read={read} what="the reasons why it waits" />;
  return (
    <div class="verdict is-waiting" role="group" aria-label="Why">
      {items.slice(0, FIRST).map((item) => (
        <div class="verdict-row" key={item.text}>
          <State of={item.code === "approval" ? "waiting" : "queued"} quiet />
          <span class="verdict-text"><Prose text={item.text} />{item.until && <span class="dim"> · <Ago at={item.until} /></span>}{item.refs.slice(0, 3).map((ref) => <span key={`${ref.run} ${ref.task}`}> · <Held reference={ref} /></span>)}</span>
          {item.code === "approval" && <Approval run={run} task={item.task} index={item.index} />}
        </div>
      ))}
      {items.length > FIRST && <span class="dim">and {count(items.length - FIRST, "other reason")}</span>}
    </div>
  );
}

/** A link to what is waited for. */
function Held({ reference }: { reference: { run: string; task: string | null; index: number | null } }): ComponentChildren {
  const { run, task, index } = reference;
  return <a href={href(`${path("runs", run)}${changedQuery(new URLSearchParams(), { task, index })}`)}>{task === null ? shortId(run) : taskName(task, index)}</a>;
}

function Approval({ run, task, index }: { run: string; task: string | null; index: number | null }): JSX.Element {
  const name = task === null ? null : taskName(task, index);
  const words = `${shortId(run)}${name === null ? "" : ` ${argument(name)}`}`;
  return (
    <span class="verdict-actions">
      <Action label="Approve" kind="primary" small role="operator" command={`ork approve ${words}`} run={() => source.act("POST /runs/{run}/approve", { run }, { task: name })} done="Approved" />
      <Action label="Reject" small role="operator" command={`ork reject ${words}`} ask="The task fails, and what depends on it is skipped." run={() => source.act("POST /runs/{run}/reject", { run }, { task: name })} done="Rejected" />
    </span>
  );
}

/** Steps of a long path that are shown: those that would save most. */
const STEPS = 4;

/** `critical path: extract → load → publish, 5m 51s`, with what each step would save. */
function CriticalPath({ summary }: { summary: RunSummary }): JSX.Element | null {
  const { critical_path: steps } = summary;
  const [first, last] = [steps[0], steps.at(-1)];
  if (!first || !last || steps.length < 2) return null;
  const seconds = (Date.parse(last.finished_at) - Date.parse(first.started_at)) / 1000;
  const kept = new Set([...steps].sort((a, b) => b.seconds - a.seconds).slice(0, STEPS));
  const best = [...steps].sort((a, b) => b.saves - a.saves)[0];
  return (
    <p class="critical">
      <span class="dim">critical path</span>{" "}
      {steps.map((step, place) => {
        if (!kept.has(step)) return place > 0 && kept.has(steps[place - 1] as typeof step) ? <span key={step.name} class="dim"> → …</span> : place === 0 ? <span key={step.name} class="dim">…</span> : null;
        return (
          <span key={step.name}>
            {place > 0 && <span class="dim"> → </span>}
            <a href={selectLink(step.name, null)} title={`waited ${duration(step.waited)}, took ${duration(step.seconds)}, would save ${duration(step.saves)}`}>{step.name}</a>
          </span>
        );
      })}
      <span class="dim">, {steps.length > STEPS && `${steps.length} steps, `}</span><b class="number">{duration(seconds)}</b>
      {best && best.saves >= 1 && <span class="dim"> · without {best.name} it would end <b>{rough(best.saves)}</b> earlier</span>}
    </p>
  );
}
