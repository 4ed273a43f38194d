/** What needs a person: approvals, failures by message, missed schedules, alerts that were not sent, broken locations. */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { Overview, PendingApproval } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { source } from "../data/session.ts";
import { endOf, type FailureGroup, groupFailures } from "../failures.ts";
import { Action } from "../parts/action.tsx";
import { ApprovalRows } from "../parts/approvals.tsx";
import { BulkAction } from "../parts/bulk.tsx";
import { Icon, type IconName } from "../parts/icons.tsx";
import { State } from "../parts/state.tsx";
import { Ago, Clock } from "../parts/time.tsx";
import { currentQuery, href, path, setQuery } from "../router.ts";
import { argument, count, milliseconds, shortId } from "../words.ts";

/** Scheduled times of a workflow that passed without a run. */
export interface Missed {
  workflow: string;
  times: string[];
}

interface NeedsProps {
  overview: Overview;
  since: number;
  missed: readonly Missed[];
  approvals: readonly PendingApproval[];
  /** Everything could be read. Otherwise nothing is said about what is not shown. */
  isComplete: boolean;
}

const SHOWN_GROUPS = 6;
const SHOWN_RUNS = 12;

export function Needs({ overview, since, missed, approvals, isComplete }: NeedsProps): JSX.Element {
  const groups = groupFailures(overview.failures.filter((run) => milliseconds(endOf(run)) >= since));
  const isAll = currentQuery.value.has("groups");
  const shown = isAll ? groups : groups.slice(0, SHOWN_GROUPS);
  const late = withLate(missed, overview);
  const isQuiet = groups.length + late.length + approvals.length + overview.unsent_alerts + overview.broken_locations.length === 0;
  if (isQuiet && !isComplete) return <p class="dim">No run failed.</p>;
  if (isQuiet) return <p class="all-well"><Icon name="check" />Nothing needs you. No run failed, no schedule was missed, nothing waits for approval.</p>;
  return (
    <div class="needs">
      {approvals.length > 0 && <ApprovalRows waiting={approvals} />}
      <ul class="list needs-list">
        {shown.map((group) => <Failed group={group} key={group.key} />)}
        {groups.length > shown.length && (
          <li class="needs-more"><button type="button" class="button plain small" onClick={() => setQuery({ groups: "all" })}>Show {groups.length - shown.length} more kinds of failures</button></li>
        )}
        {overview.more_failures && <li class="needs-more dim">Only the newest 100 failed runs are grouped here. <a href={href("runs?status=failed")}>All failed runs</a></li>}
        {late.map((each) => <MissedRow of={each} key={each.workflow} />)}
        {overview.broken_locations.map((each) => (
          <Row icon="plug" key={each.name} name={<a href={href("system")}>{each.name}</a>} text={<>{each.error}{each.code && <> <code class="dim">{each.code}</code></>}</>}>
            <Action label="Refresh" small role="operator" command={`ork locations refresh ${argument(each.name)}`} run={() => source.act("POST /locations/{name}/refresh", { name: each.name })} done={`${each.name} is scanned soon`} />
          </Row>
        ))}
        {overview.unsent_alerts > 0 && (
          <Row icon="warn" name={<a href={href("system")}>Alerts</a>} text={`${overview.unsent_alerts >= 20 ? "20 or more alerts" : count(overview.unsent_alerts, "alert")} could not be sent`}>
            <a class="button small" href={href("system")} title="ork alerts">Look</a>
          </Row>
        )}
      </ul>
    </div>
  );
}

interface RowProps {
  icon?: IconName;
  state?: string;
  name: ComponentChildren;
  text: ComponentChildren;
  aside?: ComponentChildren;
  children?: ComponentChildren;
}

function Row({ icon, state, name, text, aside, children }: RowProps): JSX.Element {
  return (
    <li class="need">
      {state ? <State of={state} quiet /> : <span class="need-icon">{icon && <Icon name={icon} />}</span>}
      <span class="need-name">{name}</span>
      <span class="need-text">{text}</span>
      <span class="need-aside">{aside}</span>
      <span class="need-actions">{children}</span>
    </li>
  );
}

function Failed({ group }: { group: FailureGroup }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  const newest = group.runs[0];
  const summary = useRead("/runs/{run}/summary", newest ? { run: newest.id } : null).data.value;
  const [name = "", ...others] = group.workflows;
  const failed = summary?.counts.failed ?? 0;
  const first = summary?.failures[0];
  const success = useRead("/runs/{run}/previous-success", newest ? { run: newest.id } : null).data.value?.run;
  if (!newest) return <></>;
  const isOne = group.runs.length === 1;
  return (
    <>
      <Row
        state="failed"
        name={others.length === 0 ? <a href={href(isOne ? path("runs", newest.id) : path("workflows", name))}>{name}</a> : <span title={group.workflows.slice(0, 20).join(", ")}>{count(group.workflows.length, "workflow")}</span>}
        text={<><span class="need-message" title={group.message}>{group.task && <b>{group.task}: </b>}{group.message}</span>{failed > 1 && <span class="times" title={`${failed} tasks failed in the newest of these runs`}>×{failed}</span>}</>}
        aside={isOne ? <Ago at={endOf(newest)} /> : <button type="button" class="button plain small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{count(group.runs.length, "run")}<Icon name={isOpen ? "up" : "down"} /></button>}
      >
        <BulkAction kind="retry" small label={isOne ? "Retry" : `Retry ${group.runs.length}`} ask={isOne ? undefined : `Retries the failed tasks of ${group.runs.length} runs.`} runs={group.runs.map((run) => run.id)} />
        {success && <a class="button small" href={href(path("runs", newest.id, "compare", success.id))} title={`ork runs diff ${shortId(newest.id)} ${shortId(success.id)}`}>Compare</a>}
        {first && <a class="button small" href={href(path("runs", newest.id, "tasks", first.name, first.index ?? 0, Math.max(1, first.attempt)))} title={`ork logs ${shortId(newest.id)} ${first.name}`}>Log</a>}
      </Row>
      {isOpen && group.runs.slice(0, SHOWN_RUNS).map((run) => (
        <li class="need need-run" key={run.id}>
          <State of={run.status} quiet />
          <span class="need-name"><a href={href(path("runs", run.id))}><code>{shortId(run.id)}</code> {run.workflow}</a></span>
          <span class="need-text dim">{run.error}</span>
          <span class="need-aside"><Ago at={endOf(run)} /></span>
          <span class="need-actions"><BulkAction kind="retry" small label="Retry" runs={[run.id]} /></span>
        </li>
      ))}
      {isOpen && group.runs.length > SHOWN_RUNS && <li class="needs-more dim">{group.runs.length - SHOWN_RUNS} more. <a href={href("runs?status=failed")}>All failed runs</a></li>}
    </>
  );
}

/** Missed times of the calendar, with schedules that are late by more than a minute. */
function withLate(missed: readonly Missed[], overview: Overview): Missed[] {
  const found = new Map(missed.map((each) => [each.workflow, [...each.times]]));
  for (const { workflow, due } of overview.late) {
    const times = found.get(workflow) ?? [];
    if (!times.some((time) => milliseconds(time) === milliseconds(due))) times.push(due);
    found.set(workflow, times);
  }
  return [...found].map(([workflow, times]) => ({ workflow, times }));
}

function MissedRow({ of: { workflow, times } }: { of: Missed }): JSX.Element {
  const last = times.at(-1) ?? "";
  const link = `${path("workflows", workflow)}?view=backfill&first=${(times[0] ?? "").slice(0, 10)}&last=${last.slice(0, 10)}`;
  return (
    <Row icon="schedules" name={<a href={href(path("workflows", workflow))}>{workflow}</a>} text={<>missed {times.length === 1 ? <><Clock at={last} /> UTC</> : <>{count(times.length, "time")}, last <Clock at={last} /> UTC</>}</>} aside={<Ago at={last} />}>
      {times.length === 1 ? (
        <Action label="Run it now" small role="operator" command={`ork backfill ${argument(workflow)} --from ${last} --to ${last}`} run={() => source.act("POST /workflows/{name}/backfills", { name: workflow }, { from: last, to: last })} done={`A run of ${workflow} is created`} />
      ) : <a class="button small" href={href(link)}>Backfill</a>}
    </Row>
  );
}
