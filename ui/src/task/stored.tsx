// A value that is not JSON: the preview that its worker wrote, and what it is. The preview comes from a task's process: nothing in it is
// taken for granted, and all of it is shown as text.

import type { JSX } from "preact";

import { Sparkline } from "../parts/bars.tsx";
import { bytes, count, grouped } from "../words.ts";

type Facts = Readonly<Record<string, unknown>>;

export function Stored({ stored, preview }: { stored: unknown; preview: unknown }): JSX.Element {
  return <><p class="dim">{words(facts(stored))}</p>{contents(facts(preview))}</>;
}

function words(stored: Facts): string {
  const rows = typeof stored["rows"] === "number" ? count(stored["rows"], "row") : "";
  const shape = Array.isArray(stored["shape"]) ? stored["shape"].join(" × ") : "";
  const size = typeof stored["size"] === "number" ? bytes(stored["size"]) : "";
  return [text(stored["type"]), text(stored["name"]), rows, shape, text(stored["media_type"]), size].filter(Boolean).join(" · ");
}

function contents(preview: Facts): JSX.Element | null {
  if (preview["kind"] === "table") return <Rows columns={list(preview["columns"])} rows={list(preview["rows"])} />;
  if (preview["kind"] === "text") return <div class="text-preview"><pre tabIndex={0} aria-label="Beginning of the file">{text(preview["text"])}</pre></div>;
  if (preview["kind"] === "array") return <p class="number-list">{list(preview["first"]).map(text).join(", ")} …</p>;
  if (preview["kind"] === "folder") return <ul>{list(preview["files"]).map((each, place) => <li key={place}>{text(facts(each)["name"])} <span class="dim">{bytes(Number(facts(each)["size"]) || 0)}</span></li>)}</ul>;
  return null;
}

function Rows({ columns, rows }: { columns: readonly unknown[]; rows: readonly unknown[] }): JSX.Element {
  return (
    <div class="records" tabIndex={0} role="region" aria-label="First rows of the table">
      <table>
        <thead>
          <tr><th scope="col"><span class="only-read">Number</span></th>{columns.map((each, place) => <th scope="col" key={place}>{text(facts(each)["name"])}</th>)}</tr>
          <tr><td />{columns.map((each, place) => <td key={place}><span class="dim">{text(facts(each)["type"])}</span><Histogram of={facts(facts(each)["histogram"])} name={text(facts(each)["name"])} /></td>)}</tr>
        </thead>
        <tbody>
          {rows.map((row, place) => <tr key={place}><th scope="row" class="number">{grouped(place)}</th>{list(row).map((value, column) => <td key={column} class={typeof value === "number" ? "number" : undefined}>{text(value)}</td>)}</tr>)}
        </tbody>
      </table>
    </div>
  );
}

function Histogram({ of, name }: { of: Facts; name: string }): JSX.Element | null {
  const counts = list(of["counts"]).filter((each): each is number => typeof each === "number");
  if (counts.length === 0) return null;
  return <Sparkline values={counts} width={80} height={20} label={`${name}: from ${text(of["low"])} to ${text(of["high"])}`} />;
}

function facts(value: unknown): Facts {
  return typeof value === "object" && value !== null ? (value as Facts) : {};
}

function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, 200) : [];
}

function text(value: unknown): string {
  if (value === undefined || value === null) return "";
  const found = typeof value === "string" ? value : JSON.stringify(value);
  return found.length > 200 ? `${found.slice(0, 200)}…` : found;
}
