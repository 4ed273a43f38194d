/** Ctrl K: goes to any page, workflow, run or task, explains an error code, or starts an action, by a few letters. */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { ListedRun } from "../api.d.ts";
import { CODES } from "../codes.ts";
import { paletteActions } from "../commands.ts";
import { useLoad, useRead } from "../data/read.ts";
import { source } from "../data/session.ts";
import { tasksOf } from "../definition.ts";
import { NAVIGATION } from "../pages.ts";
import { Explanation } from "../parts/code.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Icon, type IconName } from "../parts/icons.tsx";
import { Keys } from "../parts/keys.tsx";
import { RunState, State } from "../parts/state.tsx";
import { Ago } from "../parts/time.tsx";
import { currentPath, go, path } from "../router.ts";
import { runState, shortId } from "../words.ts";
import { type Findable, pick, splitTarget } from "./matching.ts";

interface Item extends Findable {
  key: string;
  icon?: IconName;
  aside?: JSX.Element | string | null;
  before?: JSX.Element;
  /** The palette stays open. */
  stays?: boolean;
  run: () => void;
}

const TYPING_MS = 150;

export default function Palette({ onClose }: { onClose: () => void }): JSX.Element {
  const [text, setText] = useState("");
  const [place, setPlace] = useState(0);
  const [code, setCode] = useState<string | null>(null);
  const { items, isSearching } = useItems(text.trim(), setCode);
  const list = useRef<HTMLDivElement>(null);
  const current = Math.min(place, items.length - 1);
  useEffect(() => list.current?.querySelector(`[data-item="${current}"]`)?.scrollIntoView({ block: "nearest" }), [current]);
  const choose = (item: Item | undefined): void => {
    if (!item) return;
    if (!item.stays) onClose();
    item.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") setPlace((current + 1) % Math.max(1, items.length));
    else if (event.key === "ArrowUp") setPlace((current - 1 + items.length) % Math.max(1, items.length));
    else if (event.key === "Enter") choose(items[current]);
    else return;
    event.preventDefault();
  };
  if (code !== null) {
    return (
      <Dialog title={code} onClose={onClose} footer={<><button type="button" class="button" onClick={() => setCode(null)}>Back</button><span class="push" /><button type="button" class="button" onClick={onClose}>Close</button></>}>
        <Explanation code={code} />
      </Dialog>
    );
  }
  return (
    <Dialog title="Find" onClose={onClose} bare>
      <div class="palette">
        <div class="palette-field">
          <Icon name="search" />
          <input
            type="text"
            role="combobox"
            aria-expanded="true"
            aria-controls="palette-list"
            aria-activedescendant={items.length ? `palette-${current}` : undefined}
            aria-label="Find a run, workflow, task, page, action or error code"
            placeholder="Run, workflow, task, page, action, error code"
            value={text}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => { setText(event.currentTarget.value); setPlace(0); }}
            onKeyDown={onKeyDown}
          />
        </div>
        <div class="palette-list" id="palette-list" role="listbox" aria-label="Results" ref={list}>
          {items.map((item, number) => (
            <div role="presentation" key={item.key}>
              {items[number - 1]?.group !== item.group && <div class="palette-group" role="presentation">{item.group}</div>}
              <div role="option" id={`palette-${number}`} data-item={number} class="palette-item" aria-selected={number === current} onClick={() => choose(item)} onPointerMove={() => setPlace(number)}>
                {item.before ?? (item.icon && <Icon name={item.icon} />)}
                <span class="palette-label">{item.label}</span>
                <span class="palette-aside">{item.aside}</span>
              </div>
            </div>
          ))}
          {items.length === 0 && <p class="palette-none">{isSearching ? "Searching …" : `Nothing is called “${text}”.`}</p>}
        </div>
        <p class="palette-hint" aria-hidden="true"><span><kbd>↑</kbd> <kbd>↓</kbd> choose</span><span><kbd>Enter</kbd> open</span><span><code>my_etl/load</code> a task</span><span><code>ORK201</code> an error code</span></p>
      </div>
    </Dialog>
  );
}

function useItems(text: string, explain: (code: string) => void): { items: Item[]; isSearching: boolean } {
  const lower = text.toLowerCase();
  const workflows = useRead("/workflows", { limit: 1000 }).data.value?.workflows ?? [];
  const latest = useRead("/runs", { limit: 50 }).data.value?.runs ?? [];
  const found = useSearch(lower);
  const tasks = useTasks(text, workflows.map((each) => each.name));
  const items = useMemo(() => {
    const runs = new Map([...found.runs, ...latest].map((run) => [run.id, run]));
    const all: Item[] = [
      ...tasks,
      ...[...runs.values()].map(runItem),
      ...workflows.map((each): Item => ({ key: `workflow ${each.name}`, group: "Workflows", label: each.name, icon: "workflows", aside: each.enabled ? null : "off", run: () => go(path("workflows", each.name)) })),
      ...paletteActions.value.map((each): Item => ({ key: `action ${each.label}`, group: "Actions", label: each.label, words: each.words, icon: "right", aside: each.keys ? <Keys of={each.keys} /> : null, run: each.run })),
      ...NAVIGATION.map((entry): Item => ({ key: `page ${entry.to}`, group: "Pages", label: entry.label, icon: entry.icon, aside: <Keys of={`g ${entry.key}`} />, run: () => go(entry.to) })),
      ...Object.entries(CODES).map(([code, title]): Item => ({ key: code, group: "Error codes", label: `${code}  ${title}`, icon: "help", isOnlyFound: true, stays: true, run: () => explain(code) })),
    ];
    return pick(all, lower);
  }, [lower, workflows, latest, found.runs, tasks, paletteActions.value]);
  return { items, isSearching: found.isSearching };
}

function runItem(run: ListedRun): Item {
  return { key: `run ${run.id}`, group: "Runs", label: `${shortId(run.id)} ${run.workflow}`, words: `${run.id} ${runState(run)}`, before: <RunState run={run} quiet />, aside: <Ago at={run.created_at} />, run: () => go(path("runs", run.id)) };
}

/** Older runs by the beginning of their id or a part of their workflow's name, shortly after the last key. */
function useSearch(text: string): { runs: readonly ListedRun[]; isSearching: boolean } {
  const [wanted, setWanted] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setWanted(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const isUseful = /^[\w.-]{2,100}$/.test(wanted) && !/^ork\d/.test(wanted);
  const read = useRead("/runs", isUseful ? { q: wanted, limit: 12 } : null);
  return { runs: read.data.value?.runs ?? [], isSearching: wanted !== text || (isUseful && read.isLoading.value) };
}

/** Tasks of the run or workflow before the slash of the text, or of the one whose page is shown. */
function useTasks(text: string, workflows: readonly string[]): Item[] {
  const target = splitTarget(text, currentPath.value, workflows);
  const key = target === null ? null : `palette tasks ${target.kind} ${target.name}`;
  const read = useLoad(key, async (from, signal): Promise<Item[]> => {
    if (target?.kind === "workflow") {
      const { definition } = await from.get("/workflows/{name}", { name: target.name }, { signal });
      return tasksOf(definition).map((task) => taskItem(target.name, task.name, <Icon name="workflows" />, () => go(`${path("workflows", target.name)}?view=graph&task=${encodeURIComponent(task.name)}`)));
    }
    const { run, tasks } = await from.get("/runs/{run}/summary", { run: target?.name ?? "" }, { signal });
    return tasks.map((task) => taskItem(shortId(run.id), task.name, <State of={task.status ?? "pending"} quiet />, () => void openTask(run.id, task.name)));
  });
  return (target && read.data.value) || NO_TASKS;
}

const NO_TASKS: Item[] = [];

function taskItem(owner: string, name: string, before: JSX.Element, run: () => void): Item {
  return { key: `task ${owner} ${name}`, group: `Tasks of ${owner}`, label: name, words: `${owner}/${name}`, before, run };
}

/** The page of the task's last attempt; of a fan-out, of its first instance that failed, or else of its first. */
async function openTask(run: string, name: string): Promise<void> {
  const one = async (status?: ["failed"]): Promise<{ index: number | null; attempt: number } | undefined> =>
    (await source.get("/runs/{run}/tasks", { run, name, status, limit: 2 })).tasks.filter((task) => task.instances === null)[0];
  const task = (await one(["failed"]).catch(() => undefined)) ?? (await one().catch(() => undefined));
  go(task && task.attempt > 0 ? path("runs", run, "tasks", name, task.index ?? 0, task.attempt) : path("runs", run));
}
