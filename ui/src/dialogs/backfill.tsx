/** Creates runs for past times of a schedule, after a preview of each of them. Opened by `showDialog("backfill")`. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Backfill, BackfillTime, ParamField, WorkflowWithDefinition } from "../api.d.ts";
import { now } from "../clock.ts";
import { complaints, entered, paramFields, paramOptions } from "../data/params.ts";
import { asProblem } from "../data/problem.ts";
import { source } from "../data/session.ts";
import { addDays, dayOf, isDay, localTime, startOfDay } from "../data/zones.ts";
import { Action } from "../parts/action.tsx";
import { ChosenWorkflow, clickPrimary, useChosen } from "../parts/chosen.tsx";
import { CommandLine } from "../parts/command.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Empty } from "../parts/empty.tsx";
import { TextField } from "../parts/form.tsx";
import { notify } from "../parts/notice.tsx";
import { Loaded } from "../parts/page.tsx";
import { ParamForm } from "../parts/params.tsx";
import { State } from "../parts/state.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { currentQuery, go, href, path, setQuery } from "../router.ts";
import { argument, count, lookOf, shortId, utc } from "../words.ts";

const DAY_MS = 86_400_000;
const MOST_MARKS = 366;
/** The server's own limit for one backfill. */
const MOST_RUNS = 10_000;

export default function BackfillDialog(): JSX.Element {
  const onClose = (): void => setQuery({ dialog: null, first: null, last: null });
  const chosen = useChosen();
  if (chosen.name === null) return <Dialog title="Backfill a workflow" onClose={onClose}><ChosenWorkflow /></Dialog>;
  const data = chosen.read.data.value;
  if (!data) return <Dialog title={`Backfill ${chosen.name}`} onClose={onClose}><Loaded read={chosen.read} what="the workflow" gone={`There is no workflow ${chosen.name}`}>{() => null}</Loaded></Dialog>;
  const found = data.workflow;
  if (!found.schedule) {
    return (
      <Dialog title={`Backfill ${found.name}`} onClose={onClose}>
        <Empty title="This workflow has no schedule" icon="schedules" command={`ork trigger ${argument(found.name)}`}>A backfill creates runs for past times of a schedule. Start a single run instead.</Empty>
      </Dialog>
    );
  }
  return <BackfillForm key={found.name} workflow={found} given={data.params} onClose={onClose} />;
}

/** What was previewed, and for which input. */
interface Preview {
  key: string;
  found: Backfill;
}

function BackfillForm({ workflow, given, onClose }: { workflow: WorkflowWithDefinition; given: readonly ParamField[]; onClose: () => void }): JSX.Element {
  const { name } = workflow;
  const zone = workflow.schedule?.timezone ?? "UTC";
  const fields = useMemo(() => paramFields(given), [given]);
  const [texts, setTexts] = useState<Record<string, string>>({});
  const [refused, setRefused] = useState<Record<string, string>>({});
  const [preview, setPreview] = useState<Preview | null>(null);
  const yesterday = dayOf(now.peek() - DAY_MS);
  const from = dateOf("first", addDays(yesterday, -6));
  const to = dateOf("last", yesterday);
  const { params, errors } = entered(fields, texts);
  const mistake = to < from ? "The last day is before the first." : Object.keys(errors).length > 0 ? "A param is missing or wrong." : null;
  const body = mistake ? null : { from: new Date(startOfDay(from, zone)).toISOString(), to: new Date(startOfDay(addDays(to, 1), zone) - 1).toISOString(), params };
  const key = JSON.stringify(body);
  const shown = preview?.key === key ? preview.found : null;
  const fresh = shown?.plan?.filter((each) => each.state === "new").length ?? 0;
  const command = `ork backfill ${argument(name)} --from ${from} --to ${to}${paramOptions(fields, params)}`;

  const send = async (isDry: boolean): Promise<Backfill | null> => {
    setRefused({});
    try {
      return await source.act("POST /workflows/{name}/backfills", { name }, { ...(body as NonNullable<typeof body>), dry_run: isDry }, { seconds: 60 });
    } catch (error) {
      const problem = asProblem(error);
      const about = problem.code === "ORK403" ? complaints(problem.detail, fields) : null;
      if (!about || about.rest) throw error;
      setRefused(about.errors);
      return null;
    }
  };
  const look = async (): Promise<void> => {
    const found = await send(true);
    if (found) setPreview({ key, found });
  };
  const create = async (): Promise<void> => {
    const found = await send(false);
    if (!found) return;
    notify("good", `${count(found.created, "run")} of ${name} created`);
    go(path("workflows", name));
  };
  return (
    <Dialog
      title={`Backfill ${name}`}
      onClose={onClose}
      wide
      footer={
        <>
          <CommandLine command={command} />
          <span class="push" />
          <Action label="Preview" kind={shown ? undefined : "primary"} role="operator" command={`${command} --dry-run`} reason={mistake} run={look} done={null} />
          <Action
            label={shown ? `Create ${count(fresh, "run")}` : "Create runs"}
            kind={shown && fresh > 0 ? "primary" : undefined}
            role="operator"
            command={command}
            reason={mistake ?? (!shown ? "Look at the preview first." : fresh === 0 ? "Every time has a run already." : null)}
            run={create}
            done={null}
          />
        </>
      }
    >
      <div class="run-form" onKeyDown={clickPrimary}>
        <div class="pair">
          <TextField label="First day" type="date" value={from} onInput={(text) => setQuery({ first: text })} />
          <TextField label="Last day" type="date" value={to} onInput={(text) => setQuery({ last: text })} error={to < from ? "This is before the first day." : null} hint={`Whole days in ${zone}. Times after now are left out.`} />
        </div>
        {fields.length > 0 && (
          <details class="fold" open={fields.some((field) => field.required) || Object.values(refused).some(Boolean)}>
            <summary>Params of every run</summary>
            <ParamForm fields={fields} texts={texts} errors={{ ...refused, ...errors }} onInput={(field, text) => { setTexts({ ...texts, [field]: text }); setRefused({}); }} />
          </details>
        )}
        {shown?.plan ? <Plan plan={shown.plan} zone={zone} fresh={fresh} mostActive={workflow.definition?.["max_active_runs"]} /> : <p class="dim">The preview shows every time of <code>{workflow.schedule?.cron}</code> in these days, and whether it has a run already. Nothing is created by it.</p>}
      </div>
    </Dialog>
  );
}

function Plan({ plan, zone, fresh, mostActive }: { plan: readonly BackfillTime[]; zone: string; fresh: number; mostActive: unknown }): JSX.Element {
  const columns = useMemo(() => columnsOf(zone), [zone]);
  if (plan.length === 0) return <p role="status">The schedule has no time in these days.</p>;
  return (
    <section class="plan" aria-label="Preview">
      <p role="status">
        <b>{count(fresh, "new run")}</b>{plan.length > fresh && `, ${count(plan.length - fresh, "time")} with a run already`}.{" "}
        <span class="dim">{typeof mostActive === "number" ? `At most ${count(mostActive, "run")} of it at the same time; the others wait.` : "All start as soon as there are free slots."} At most {MOST_RUNS.toLocaleString("en-US")} at once.</span>
      </p>
      {plan.length <= MOST_MARKS && (
        <div class="marks" aria-hidden="true">
          {plan.map((each) => <span key={each.time} class={each.state === "new" ? "is-new" : `is-${lookOf(each.status ?? "pending").kind}`} title={`${utc(each.time)}: ${each.state === "new" ? "new" : each.status}`} />)}
        </div>
      )}
      <Table label="Times" rows={plan} columns={columns} rowKey={(each) => each.time} rowHeight={32} />
    </section>
  );
}

function columnsOf(zone: string): Column<BackfillTime>[] {
  return [
    { key: "local", head: zone, width: "minmax(9rem, 1fr)", cell: (each) => { const { day, clock } = localTime(Date.parse(each.time), zone); return <span class="number">{day} {clock}</span>; } },
    { key: "utc", head: "UTC", width: "10rem", wide: true, cell: (each) => <span class="number dim">{utc(each.time).slice(0, 16)}</span> },
    { key: "state", head: "Run", width: "minmax(9rem, 1fr)", cell: (each) => (each.run && each.status ? <a href={href(path("runs", each.run))}><State of={each.status} /> <code>{shortId(each.run)}</code></a> : <span class="state"><span class="new-mark" aria-hidden="true" />new</span>) },
  ];
}

function dateOf(key: string, otherwise: string): string {
  const text = currentQuery.value.get(key);
  return isDay(text) ? text : otherwise;
}
