/** Ctrl K: goes to any page, workflow or run, or starts an action, by a few letters. */

import type { JSX } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { paletteActions } from "../commands.ts";
import { useLoad, useRead } from "../data/read.ts";
import { NAVIGATION } from "../pages.ts";
import { go, path } from "../router.ts";
import { runState, shortId } from "../words.ts";
import { Dialog } from "../parts/dialog.tsx";
import { Keys } from "../parts/keys.tsx";
import { Icon, type IconName } from "../parts/icons.tsx";
import { RunState } from "../parts/state.tsx";
import { Ago } from "../parts/time.tsx";

interface Item {
  group: string;
  label: string;
  words: string;
  icon?: IconName;
  aside?: JSX.Element | null;
  before?: JSX.Element;
  run: () => void;
}

const MOST = 12;
const AT_FIRST = 4;
/** Names are rarer than runs: with a text, they come first. */
const TYPED_ORDER = ["Workflows", "Pages", "Actions", "Runs"];

export default function Palette({ onClose }: { onClose: () => void }): JSX.Element {
  const [text, setText] = useState("");
  const [place, setPlace] = useState(0);
  const items = useItems(text.trim().toLowerCase());
  const list = useRef<HTMLDivElement>(null);
  const current = Math.min(place, items.length - 1);
  useEffect(() => list.current?.querySelector(`[data-item="${current}"]`)?.scrollIntoView({ block: "nearest" }), [current]);
  const choose = (item: Item | undefined): void => {
    if (!item) return;
    onClose();
    item.run();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "ArrowDown") setPlace((current + 1) % Math.max(1, items.length));
    else if (event.key === "ArrowUp") setPlace((current - 1 + items.length) % Math.max(1, items.length));
    else if (event.key === "Enter") choose(items[current]);
    else return;
    event.preventDefault();
  };
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
            aria-label="Find a run, workflow, page or action"
            placeholder="Find a run, workflow, page or action"
            value={text}
            autocomplete="off"
            spellcheck={false}
            onInput={(event) => { setText(event.currentTarget.value); setPlace(0); }}
            onKeyDown={onKeyDown}
          />
        </div>
        <div class="palette-list" id="palette-list" role="listbox" aria-label="Results" ref={list}>
          {items.map((item, number) => (
            <div role="presentation" key={`${item.group} ${item.label}`}>
              {items[number - 1]?.group !== item.group && <div class="palette-group" role="presentation">{item.group}</div>}
              <div role="option" id={`palette-${number}`} data-item={number} class="palette-item" aria-selected={number === current} onClick={() => choose(item)} onPointerMove={() => setPlace(number)}>
                {item.before ?? (item.icon && <Icon name={item.icon} />)}
                <span class="palette-label">{item.label}</span>
                <span class="palette-aside">{item.aside}</span>
              </div>
            </div>
          ))}
          {items.length === 0 && <p class="palette-none">Nothing is called “{text}”.</p>}
        </div>
      </div>
    </Dialog>
  );
}

function useItems(text: string): Item[] {
  const workflows = useRead("/workflows", { limit: 1000 });
  const runs = useRead("/runs", { limit: 100 });
  const isPrefix = /^[0-9a-z]{4,12}$/.test(text);
  const named = useLoad(isPrefix ? `run-ids ${text}` : null, (source, signal) => source.get("/run-ids", { prefix: text, limit: 5 }, { signal }));
  const found = named.data.value?.ids ?? [];
  return useMemo(() => {
    const listed = runs.data.value?.runs ?? [];
    const known = new Set(listed.map((run) => run.id));
    const all: Item[] = [
      ...listed.map((run): Item => ({ group: "Runs", label: `${shortId(run.id)} ${run.workflow}`, words: `${run.id} ${runState(run)}`, before: <RunState run={run} quiet />, aside: <Ago at={run.created_at} />, run: () => go(path("runs", run.id)) })),
      ...found.filter((id) => !known.has(id)).map((id): Item => ({ group: "Runs", label: id, words: "", icon: "runs", run: () => go(path("runs", id)) })),
      ...(workflows.data.value?.workflows ?? []).map((each): Item => ({ group: "Workflows", label: each.name, words: "", icon: "workflows", run: () => go(path("workflows", each.name)) })),
      ...paletteActions.value.map((each): Item => ({ group: "Actions", label: each.label, words: each.words ?? "", icon: "right", aside: each.keys ? <Keys of={each.keys} /> : null, run: each.run })),
      ...NAVIGATION.map((entry): Item => ({ group: "Pages", label: entry.label, words: "", icon: entry.icon, aside: <Keys of={`g ${entry.key}`} />, run: () => go(entry.to) })),
    ];
    return pick(all, text);
  }, [text, workflows.data.value, runs.data.value, found.join(), paletteActions.value]);
}

/** Items that have all the words of the text, at most a few of each group. */
function pick(items: readonly Item[], text: string): Item[] {
  const words = text.split(/\s+/).filter(Boolean);
  const taken = new Map<string, number>();
  const ordered = text ? items.toSorted((a, b) => TYPED_ORDER.indexOf(a.group) - TYPED_ORDER.indexOf(b.group)) : items;
  return ordered.filter((item) => {
    const own = `${item.group} ${item.label} ${item.words}`.toLowerCase();
    if (!words.every((word) => own.includes(word))) return false;
    const number = (taken.get(item.group) ?? 0) + 1;
    taken.set(item.group, number);
    return number <= (text || item.group === "Pages" || item.group === "Actions" ? MOST : AT_FIRST);
  });
}
