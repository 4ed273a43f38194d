/** Is Ork itself well? */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import type { Control, InstallationStatus, Limit, QuarantinedItem, Scheduler, UnsentAlert } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { source } from "../data/session.ts";
import { Action } from "../parts/action.tsx";
import { ProgressBar } from "../parts/bars.tsx";
import { Empty } from "../parts/empty.tsx";
import { TextField } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { Facts, Loaded, Page, Section } from "../parts/page.tsx";
import { Counts } from "../parts/state.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Ago } from "../parts/time.tsx";
import { Locations } from "../parts/locations.tsx";
import { Configs, Executors } from "../parts/executors.tsx";
import { href, path } from "../router.ts";
import { argument, count, duration, shortId, taskName } from "../words.ts";

const EVERY = { every: 15 } as const;
const ALL = "*";

export default function System(): JSX.Element {
  const read = useRead("/status", {}, EVERY);
  const controls = read.data.value?.controls ?? [];
  return (
    <Page title="System" read={read} what="the status" command="ork status" actions={<Maintenance control={controls.find((each) => each.target === ALL) ?? null} onDone={read.reload} />}>
      {(status) => <Contents status={status} reload={read.reload} />}
    </Page>
  );
}

function Contents({ status, reload }: { status: InstallationStatus; reload: () => void }): JSX.Element {
  return (
    <>
      <Paused controls={status.controls} />
      <Troubles status={status} />
      <About status={status} />
      <Schedulers status={status} reload={reload} />
      <Limits />
      <Locations />
      <Configs />
      <Executors />
    </>
  );
}

// ── pause, drain, resume ─────────────────────────────────────────────────────────────────────────

/** The switch of the whole installation. */
function Maintenance({ control, onDone }: { control: Control | null; onDone: () => void }): JSX.Element {
  return control
    ? <Resume target={ALL} name="--all" label="Resume the installation" kind="primary" onDone={onDone} />
    : <Hold target={ALL} name="--all" mode="paused" label="Pause the installation" ask="No scheduler starts new tasks and no schedule fires, until it is resumed. Running tasks go on to their end." onDone={onDone} />;
}

interface HoldProps {
  target: string;
  /** As the command names it. */
  name: string;
  mode: "paused" | "draining";
  label: string;
  ask: string;
  small?: boolean;
  onDone: () => void;
}

function Hold({ target, name, mode, label, ask, small, onDone }: HoldProps): JSX.Element {
  const [reason, setReason] = useState("");
  return (
    <Action
      label={label}
      icon={small ? undefined : "pause"}
      small={small}
      role="admin"
      command={`ork scheduler ${mode === "paused" ? "pause" : "drain"} ${name}${reason ? ` --reason ${argument(reason)}` : ""}`}
      ask={ask}
      fields={<TextField label="Reason" hint="Shown to everybody who asks why nothing starts." value={reason} onInput={setReason} />}
      run={() => source.act("PUT /controls/{target}", { target }, { mode, reason: reason || null })}
      done={`${name === "--all" ? "The installation" : name} is ${mode}`}
      onDone={onDone}
    />
  );
}

function Resume({ target, name, label, kind, small, onDone }: { target: string; name: string; label: string; kind?: "primary"; small?: boolean; onDone: () => void }): JSX.Element {
  return <Action label={label} icon={small ? undefined : "play"} kind={kind} small={small} role="admin" command={`ork scheduler resume ${name}`} run={() => source.act("DELETE /controls/{target}", { target })} done={`${name === "--all" ? "The installation" : name} goes on`} onDone={onDone} />;
}

function Paused({ controls }: { controls: readonly Control[] }): JSX.Element {
  return (
    <>
      {controls.map((each) => (
        <div class="banner is-warning" key={each.target}>
          <Icon name="pause" />
          <span><b>{each.target === ALL ? "The installation" : each.target} is {each.mode}</b> by {each.by}, <Ago at={each.at} />{each.reason && <>: {each.reason}</>}. Nothing new starts{each.target === ALL ? "." : " there."}</span>
        </div>
      ))}
    </>
  );
}

// ── facts ────────────────────────────────────────────────────────────────────────────────────────

function About({ status }: { status: InstallationStatus }): JSX.Element {
  const about = useRead("/installation", {}).data.value;
  const facts: (readonly [string, ComponentChildren])[] = [
    ["Unfinished runs", Object.values(status.unfinished).some(Boolean) ? <Counts of={status.unfinished} /> : "none"],
    ["Waiting tasks", status.oldest_waiting ? <>{status.waiting}, the oldest <TaskLink of={status.oldest_waiting} /> since {duration(status.oldest_waiting.seconds)}</> : String(status.waiting)],
    ["Runs longest", status.slowest ? <><TaskLink of={status.slowest} /> since {duration(status.slowest.seconds)}</> : "–"],
    ["Ork", about?.version ?? "…"],
    ["Store", about?.store ?? "…"],
    ["Alarm", about ? about.alarm.replace("_", " ") : "…"],
    ["Disk", status.is_disk_full ? <b class="field-error">full</b> : "ok"],
  ];
  return <Facts of={facts} />;
}

function TaskLink({ of }: { of: { run: string; task: string } }): JSX.Element {
  return <a class="link" href={href(path("runs", of.run))}>{of.task}</a>;
}

// ── what is wrong ────────────────────────────────────────────────────────────────────────────────

function Troubles({ status }: { status: InstallationStatus }): JSX.Element | null {
  const { unsent_alerts: alerts, quarantined } = status;
  return (
    <>
      {status.is_disk_full && <div class="banner is-warning"><Icon name="warn" /><span><b>The disk is full.</b> Nothing starts until there is space: delete old runs with <code>ork prune</code>, or make room.</span></div>}
      {alerts.length > 0 && (
        <Section title="Alerts that were not sent" aside="They are tried again.">
          <Table label="Alerts that were not sent" rows={alerts} columns={ALERTS} rowKey={(each) => each.id} sortParam="alerts" />
        </Section>
      )}
      {quarantined.length > 0 && (
        <Section title="Set aside" aside={`${count(quarantined.length, "item")} that cannot be read or processed`}>
          <Table label="Set aside" rows={quarantined} columns={QUARANTINED} rowKey={(each) => `${each.kind} ${each.id}`} sortParam="aside" />
        </Section>
      )}
    </>
  );
}

const ALERTS: readonly Column<UnsentAlert>[] = [
  { key: "kind", head: "Alert", width: "8rem", cell: (each) => each.kind },
  { key: "subject", head: "About", width: "minmax(8rem, 1fr)", cell: (each) => (each.run ? <a class="link" href={href(path("runs", each.run))}>{each.workflow ?? shortId(each.run)}{each.task && ` › ${taskName(each.task, each.index)}`}</a> : (each.workflow ?? "–")) },
  { key: "error", head: "Error", width: "minmax(8rem, 2fr)", wide: true, cell: (each) => <span class="dim" title={each.error ?? undefined}>{each.error}</span> },
  { key: "tries", head: "Tries", width: "4rem", align: "right", wide: true, cell: (each) => each.tries },
  { key: "raised", head: "Raised", width: "6rem", align: "right", wide: true, cell: (each) => <Ago at={each.raised_at} /> },
  { key: "retry", head: "Next try", width: "6rem", align: "right", cell: (each) => <Ago at={each.retry_at} /> },
];

const QUARANTINED: readonly Column<QuarantinedItem>[] = [
  { key: "kind", head: "Kind", width: "7rem", cell: (each) => each.kind },
  { key: "id", head: "Id", width: "minmax(7rem, 1fr)", cell: (each) => (each.kind === "run" ? <a class="link" href={href(path("runs", each.id))}><code>{each.id}</code></a> : <code>{each.id}</code>) },
  { key: "reason", head: "Reason", width: "minmax(8rem, 3fr)", wide: true, cell: (each) => <span class="dim" title={each.reason}>{each.reason}</span> },
  { key: "since", head: "Since", width: "6rem", align: "right", cell: (each) => <Ago at={each.since} /> },
];

// ── schedulers ───────────────────────────────────────────────────────────────────────────────────

function Schedulers({ status, reload }: { status: InstallationStatus; reload: () => void }): JSX.Element {
  const columns: readonly Column<Scheduler>[] = [
    { key: "id", head: "Scheduler", width: "minmax(4.75rem, 1fr)", cell: (each) => <><code>{each.id.slice(0, 8)}</code> <span class="dim">{each.kind}</span></> },
    { key: "host", head: "Host", width: "minmax(6rem, 1fr)", wide: true, cell: (each) => <span title={each.identity}>{hostOf(each)}</span> },
    { key: "state", head: "State", width: "minmax(5rem, 1fr)", cell: (each) => <SchedulerState of={each} control={controlOf(each, status.controls)} /> },
    { key: "runs", head: "Runs", width: "4rem", align: "right", wide: true, cell: (each) => each.runs },
    { key: "lease", head: "Lease", width: "5rem", align: "right", wide: true, cell: (each) => duration(each.lease_seconds_left) },
    { key: "started", head: "Started", width: "5.5rem", align: "right", wide: true, cell: (each) => <Ago at={each.started_at} /> },
    { key: "actions", head: "Actions", width: "8.25rem", align: "right", cell: (each) => <SchedulerActions of={each} control={controlOf(each, status.controls)} reload={reload} /> },
  ];
  const notes = status.schedulers.flatMap((each) => each.notes.map((note) => [each.id, note] as const));
  return (
    <Section title="Schedulers">
      {status.schedulers.length === 0
        ? <Empty title="No scheduler is running" icon="system" command="ork serve">Runs wait and schedules do not fire until one runs.</Empty>
        : <Table label="Schedulers" rows={status.schedulers} columns={columns} rowKey={(each) => each.id} rowHeight={40} />}
      {notes.map(([id, note]) => <p class="dim" key={`${id} ${note}`}><code>{id.slice(0, 8)}</code>: {note}</p>)}
    </Section>
  );
}

function SchedulerState({ of, control }: { of: Scheduler; control: Control | null }): JSX.Element {
  const look = control ? "paused" : of.liveness === "alive" ? "success" : of.liveness === "dead" ? "failed" : "pending";
  return <span class="state"><span class={`dot is-${look}`} aria-hidden="true" />{control ? control.mode : of.liveness}</span>;
}

function SchedulerActions({ of, control, reload }: { of: Scheduler; control: Control | null; reload: () => void }): JSX.Element {
  const name = of.id.slice(0, 8);
  if (control) return control.target === ALL ? <span class="dim">with all</span> : <Resume target={control.target} name={control.target} label="Resume" small onDone={reload} />;
  return (
    <span class="row-actions">
      <Hold target={of.id} name={name} mode="paused" label="Pause" small ask="It starts no new tasks and fires no schedules. Other schedulers take over its runs." onDone={reload} />
      <Hold target={of.id} name={name} mode="draining" label="Drain" small ask="It starts nothing, takes over no runs, and exits when its tasks have ended. Start it again to go on." onDone={reload} />
    </span>
  );
}

/** The host of an identity such as `vm+3d12…/…`. */
function hostOf({ identity }: Scheduler): string {
  return identity.split("/")[0]?.split("+")[0] ?? identity;
}

function controlOf(scheduler: Scheduler, controls: readonly Control[]): Control | null {
  const host = scheduler.identity.split("/")[0] ?? "";
  return controls.find(({ target }) => target === scheduler.id || target === host || target === ALL) ?? null;
}

// ── limits ───────────────────────────────────────────────────────────────────────────────────────

function Limits(): JSX.Element {
  const read = useRead("/limits", {}, EVERY);
  const rates = new Map((useRead("/installation", {}).data.value?.pools ?? []).map((pool) => [`pool:${pool.name}`, pool.rate]));
  return (
    <Section title="Limits and pools">
      <Loaded read={read} what="the limits">
        {({ limits }) => (limits.length === 0 ? <Empty title="No limit is in use" icon="system">Limits are shown as soon as a scheduler has started.</Empty> : <Table label="Limits" rows={limits} columns={limitColumns(rates)} rowKey={(each) => each.name} sortParam="limits" rowHeight={38} />)}
      </Loaded>
    </Section>
  );
}

function limitColumns(rates: ReadonlyMap<string, string | null>): readonly Column<Limit>[] {
  return [
    { key: "name", head: "Limit", width: "minmax(7rem, 1fr)", cell: (each) => <LimitName name={each.name} /> },
    { key: "used", head: "Used", width: "minmax(8rem, 14rem)", cell: (each) => <Slots limit={each} /> },
    { key: "rate", head: "Rate", width: "6rem", wide: true, cell: (each) => <span class="dim">{rates.get(each.name) ?? "–"}</span> },
    { key: "holders", head: "Held by", width: "minmax(8rem, 3fr)", wide: true, cell: (each) => <Holders of={each} /> },
  ];
}

function LimitName({ name }: { name: string }): JSX.Element {
  if (name === ALL) return <>all tasks</>;
  const [kind, ...rest] = name.split(":");
  return rest.length === 0 ? <>{name}</> : <><span class="dim">{kind}</span> {rest.join(":")}</>;
}

function Slots({ limit }: { limit: Limit }): JSX.Element {
  return <span class={limit.used >= limit.slots ? "is-full" : undefined} title={limit.used >= limit.slots ? "No slot is free: tasks wait." : undefined}><ProgressBar done={limit.used} total={limit.slots} noun="slot" /></span>;
}

function Holders({ of }: { of: Limit }): JSX.Element {
  if (of.holders.length === 0) return <span class="dim">–</span>;
  return (
    <>
      {of.holders.map((each, place) => <span key={`${each.run} ${each.task} ${each.index}`}>{place > 0 && ", "}<a class="link" href={href(path("runs", each.run))}><code>{shortId(each.run)}</code> {taskName(each.task, each.index)}</a></span>)}
      {of.used > of.holders.length && <span class="dim">, {of.used - of.holders.length} more</span>}
    </>
  );
}
