/** The filters of the runs page. All of them are in the address. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { RunStatus, Sort, Trigger } from "../api.d.ts";
import { serverNow } from "../clock.ts";
import { useRead } from "../data/read.ts";
import type { Given } from "../data/source.ts";
import { DAY, HOUR } from "../health.ts";
import { Search, Select, useDraft } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { currentQuery, setQuery } from "../router.ts";
import { argument, utc } from "../words.ts";

export type RunFilters = Omit<Given<"/runs">, "limit" | "cursor" | "counts">;

const STATUSES: readonly RunStatus[] = ["failed", "running", "pending", "paused", "success", "cancelled"];
const TRIGGERS: readonly Trigger[] = ["manual", "schedule", "backfill", "event"];
const RANGES: Readonly<Record<string, readonly [label: string, milliseconds: number]>> = { "1h": ["Last hour", HOUR], "24h": ["Last 24 hours", DAY], "7d": ["Last 7 days", 7 * DAY], "30d": ["Last 30 days", 30 * DAY] };
const KEYS = ["status", "workflow", "trigger", "q", "param", "range", "after", "before", "order"] as const;
const TYPING_MS = 250;

/** The filters of the address, as the API takes them. A relative range starts when it is chosen. */
export function useFilters(): { given: RunFilters; key: string; isFiltered: boolean } {
  const query = currentQuery.value;
  const key = KEYS.map((name) => query.getAll(name).join(",")).join("|");
  const given = useMemo(() => read(query), [key]);
  return { given, key, isFiltered: KEYS.some((name) => name !== "order" && query.has(name)) };
}

function read(query: URLSearchParams): RunFilters {
  const range = RANGES[query.get("range") ?? ""];
  const param = query.get("param");
  const given: RunFilters = {
    status: query.getAll("status").filter((each): each is RunStatus => (STATUSES as readonly string[]).includes(each)),
    workflow: query.get("workflow"),
    trigger: TRIGGERS.find((each) => each === query.get("trigger")) ?? null,
    q: query.get("q"),
    param: param && /^[^:=]+[:=]/.test(param) ? param.replace(/[:=]/, ":") : null,
    created_after: range ? new Date(serverNow() - range[1]).toISOString() : time(query.get("after")),
    created_before: range ? null : time(query.get("before")),
    sort: (["duration", "-duration"] as readonly (Sort | null)[]).find((each) => each === query.get("order")) ?? null,
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null && value !== "" && !(Array.isArray(value) && value.length === 0)));
}

function time(text: string | null): string | null {
  const found = Date.parse(text ?? "");
  return Number.isNaN(found) ? null : new Date(found).toISOString();
}

export function clearFilters(): void {
  setQuery(Object.fromEntries(KEYS.map((name) => [name, null])));
}

/** The command that lists the same runs. */
export function commandOf(given: RunFilters): string {
  const options: [string, string | null | undefined][] = [
    ["--workflow", given.workflow],
    ...(given.status ?? []).map((status): [string, string] => ["--status", status]),
    ["--trigger", given.trigger],
    ["--search", given.q],
    ["-p", given.param?.replace(":", "=")],
    ["--after", given.created_after],
    ["--before", given.created_before],
  ];
  const words = options.filter(([, value]) => value).map(([name, value]) => `${name} ${argument(value ?? "")}`);
  return ["ork runs", ...words, ...(given.sort === "-duration" ? ["--longest"] : [])].join(" ");
}

export function Filters({ aside }: { aside: ComponentChildren }): JSX.Element {
  const query = currentQuery.value;
  const chosen = query.getAll("status");
  const toggle = (status: string): void => setQuery({ status: chosen.includes(status) ? chosen.filter((each) => each !== status) : [...chosen, status] });
  const isFiltered = KEYS.some((name) => query.has(name));
  return (
    <div class="filters">
      <div class="filters-first">
        <div class="choice" role="group" aria-label="States">
          <button type="button" aria-pressed={chosen.length === 0} onClick={() => setQuery({ status: null })}>All</button>
          {STATUSES.map((status) => <button type="button" key={status} aria-pressed={chosen.includes(status)} onClick={() => toggle(status)}>{status}</button>)}
        </div>
        {aside}
      </div>
      <Typed name="q" label="Workflow or id" placeholder="Workflow or id" />
      <WorkflowSelect />
      <span class={query.has("trigger") ? "is-set" : undefined}>
        <Select label="Trigger" hideLabel value={query.get("trigger") ?? ""} onChange={(trigger) => setQuery({ trigger })} options={[["", "Any trigger"], ...TRIGGERS.map((each) => [each, each] as const)]} />
      </span>
      <TimeSelect />
      <Param />
      <span class={query.has("order") ? "is-set" : undefined}>
        <Select label="Order" hideLabel value={query.get("order") ?? ""} onChange={(order) => setQuery({ order })} options={[["", "Newest first"], ["-duration", "Longest first"], ["duration", "Shortest first"]]} />
      </span>
      {isFiltered && <button type="button" class="button plain small" onClick={clearFilters}><Icon name="close" />Clear</button>}
    </div>
  );
}

/** A text that is searched for shortly after the last key. */
function useTyped(name: string): [string, (text: string) => void] {
  const inAddress = currentQuery.value.get(name) ?? "";
  const [text, setText] = useDraft(inAddress);
  useEffect(() => {
    if (text === inAddress) return undefined;
    const timer = setTimeout(() => setQuery({ [name]: text.trim() === "" ? null : text }), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return [text, setText];
}

function Typed({ name, label, placeholder }: { name: string; label: string; placeholder: string }): JSX.Element {
  const [text, setText] = useTyped(name);
  return <Search label={label} placeholder={placeholder} value={text} onInput={setText} />;
}

function Param(): JSX.Element {
  const [text, setText] = useTyped("param");
  return <input class="param mono" type="text" aria-label="Param, as name=value" placeholder="param=value" title="Runs with this param, as name=value" value={text} autocomplete="off" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} />;
}

function WorkflowSelect(): JSX.Element {
  const workflows = useRead("/workflows", { limit: 1000 }).data.value?.workflows ?? [];
  const chosen = currentQuery.value.get("workflow") ?? "";
  const names = workflows.map((each) => each.name);
  if (chosen !== "" && !names.includes(chosen)) names.unshift(chosen);
  return (
    <span class={chosen ? "is-set" : undefined}>
      <Select label="Workflow" hideLabel value={chosen} onChange={(workflow) => setQuery({ workflow })} options={[["", "Any workflow"], ...names.map((name) => [name, name] as const)]} />
    </span>
  );
}

/** A relative range, or times of its own: `after` and `before`, in UTC. */
function TimeSelect(): JSX.Element {
  const query = currentQuery.value;
  const isOwn = query.has("after") || query.has("before");
  const choose = (next: string): void => {
    if (next === "own") setQuery({ range: null, after: new Date(Math.floor((serverNow() - DAY) / HOUR) * HOUR).toISOString() });
    else setQuery({ range: next, after: null, before: null });
  };
  return (
    <span class={`range${isOwn || query.has("range") ? " is-set" : ""}`}>
      <Select label="Created" hideLabel value={isOwn ? "own" : (query.get("range") ?? "")} onChange={choose} options={[["", "Any time"], ...Object.entries(RANGES).map(([key, [label]]) => [key, label] as const), ["own", "From … to …"]]} />
      {isOwn && <><Moment name="after" label="From, UTC" /><span class="dim">to</span><Moment name="before" label="To, UTC" /></>}
    </span>
  );
}

function Moment({ name, label }: { name: "after" | "before"; label: string }): JSX.Element {
  const set = time(currentQuery.value.get(name));
  const onChange = (text: string): void => setQuery({ [name]: text ? time(`${text}Z`) : null });
  return <input type="datetime-local" aria-label={label} title={set ? utc(set) : label} value={set?.slice(0, 16) ?? ""} onChange={(event) => onChange(event.currentTarget.value)} />;
}
