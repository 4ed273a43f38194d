/** A JSON value as a tree that opens by parts. Long texts and lists are cut with a note. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { count } from "../words.ts";

const TEXT_SHOWN = 400;
const ITEMS_SHOWN = 100;

export function Tree({ value, label, depth = 1 }: { value: unknown; label: string; depth?: number }): JSX.Element {
  return <div class="tree" role="group" aria-label={label}><Node value={value} depth={depth} /></div>;
}

function Node({ name, value, depth }: { name?: string; value: unknown; depth: number }): JSX.Element {
  const [isOpen, setOpen] = useState(depth > 0);
  const key = name === undefined ? null : <span class="tree-key">{name}</span>;
  if (typeof value !== "object" || value === null || Object.keys(value).length === 0) return <div class="tree-leaf">{key}<Leaf value={value} /></div>;
  const isList = Array.isArray(value);
  const entries = Object.entries(value);
  const size = isList ? count(entries.length, "item") : count(entries.length, "key");
  return (
    <details open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{key}<span class="dim">{isList ? "[ ]" : "{ }"} {size}</span></summary>
      {isOpen && entries.slice(0, ITEMS_SHOWN).map(([each, inner]) => <Node key={each} name={each} value={inner} depth={depth - 1} />)}
      {isOpen && entries.length > ITEMS_SHOWN && <p class="dim">… {count(entries.length - ITEMS_SHOWN, "more", "more")}</p>}
    </details>
  );
}

export function Leaf({ value }: { value: unknown }): JSX.Element {
  const [isWhole, setWhole] = useState(false);
  if (typeof value !== "string") return <code class={`value is-${value === null ? "null" : typeof value}`}>{JSON.stringify(value) ?? "–"}</code>;
  const isLong = value.length > TEXT_SHOWN && !isWhole;
  return (
    <>
      <code class="value is-string">{isLong ? value.slice(0, TEXT_SHOWN) : value}</code>
      {isLong && <button type="button" class="button plain small" onClick={() => setWhole(true)}>… {count(value.length - TEXT_SHOWN, "more character")}</button>}
    </>
  );
}
