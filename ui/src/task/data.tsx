/** What went in and what came out: a table for records, a line for numbers, text, or a tree. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { OutputPreview } from "../api.d.ts";
import { useLoad, useRead } from "../data/read.ts";
import type { Source } from "../data/source.ts";
import { Sparkline } from "../parts/bars.tsx";
import { CopyButton } from "../parts/command.tsx";
import { Empty, Partial } from "../parts/empty.tsx";
import { Loaded, Section } from "../parts/page.tsx";
import { bytes, count, grouped, lookOf } from "../words.ts";
import { inputsOf, type FoundTask, type TaskId, taskHref } from "./model.ts";
import { inputsOfSpec } from "./definition.ts";
import { Stored } from "./stored.tsx";
import { Leaf, Tree } from "./tree.tsx";

const FIRST = 50;
const MOST = 1000;

export function Data({ id, found }: { id: TaskId; found: FoundTask }): JSX.Element {
  const { task } = found;
  const inputs = inputsOf(task.failure);
  return (
    <>
      {task.item !== null && task.item !== undefined && <Section title="Item"><Tree value={task.item} label="Item" depth={2} /></Section>}
      {inputs.length > 0 ? <Section title="Inputs of the failed call"><dl class="pairs">{inputs.map(([name, value]) => <div key={name}><dt>{name}</dt><dd><code>{value}</code></dd></div>)}</dl></Section> : <Inputs id={id} found={found} />}
      {task.status === "success" || task.instances !== null
        ? <Output id={id} isFanOut={task.instances !== null} />
        : <Section title="Output"><p class="dim">None: the task is {lookOf(task.status).word}.</p></Section>}
    </>
  );
}

/** The inputs as the definition names them: values of params and constants, and links to the tasks they come from. */
function Inputs({ id, found }: { id: TaskId; found: FoundTask }): JSX.Element | null {
  const read = useRead("/versions/{version}", { version: found.run.version }, { seconds: 30 });
  const inputs = read.data.value ? inputsOfSpec(read.data.value.definition, id.task, found.run.params ?? {}) : [];
  if (inputs.length === 0) return null;
  return (
    <Section title="Inputs">
      <dl class="pairs">
        {inputs.map(({ name, value, from }) => <div key={name}><dt>{name}</dt><dd>{from ? <>from <a class="link" href={taskHref({ run: id.run, task: from.task, index: null })}>{from.path}</a></> : <Leaf value={typeof value === "object" ? JSON.stringify(value) : value} />}</dd></div>)}
      </dl>
    </Section>
  );
}

function Output({ id, isFanOut }: { id: TaskId; isFanOut: boolean }): JSX.Element {
  const [most, setMost] = useState(FIRST);
  const read = useLoad(`output ${JSON.stringify(id)} ${most}`, (source, signal) => readPreview(source, id, most, signal));
  const preview = read.data.value;
  const problem = read.problem.value;
  if (!preview && problem?.kind === "refused") return <Section title="Output"><p class="dim">{problem.detail}</p></Section>;
  return (
    <Section title="Output" aside={preview && sizeWords(preview)}>
      <Loaded read={read} what="the output" gone={isFanOut ? "No instance has an output yet" : "The output is not kept any more"}>
        {(shown) => <Preview preview={shown} more={most < MOST ? () => setMost(MOST) : undefined} />}
      </Loaded>
    </Section>
  );
}

/** With `preview` the answer is an OutputPreview; without, any JSON. */
async function readPreview(source: Source, { run, task, index }: TaskId, preview: number, signal: AbortSignal): Promise<OutputPreview> {
  const given = { run, name: task, preview };
  const found = index === null ? source.get("/runs/{run}/tasks/{name}/output", given, { signal }) : source.get("/runs/{run}/tasks/{name}/{index}/output", { ...given, index }, { signal });
  return (await found) as OutputPreview;
}

function sizeWords(preview: OutputPreview): string {
  const noun = preview.kind === "table" ? "row" : preview.kind === "object" ? "key" : preview.kind === "text" ? "character" : "item";
  return [preview.length === null ? "" : count(preview.length, noun), preview.size === null ? "" : bytes(preview.size)].filter(Boolean).join(" · ");
}

export function Preview({ preview, more }: { preview: OutputPreview; more?: (() => void) | undefined }): JSX.Element {
  const items = preview.items ?? [];
  const cut = preview.is_complete || preview.stored ? null : preview.kind === "table" || preview.kind === "numbers" || preview.items ? <Partial shown={items.length} of={preview.length} what={preview.kind === "table" ? "rows" : "items"} more={more} /> : <p class="partial">Only the beginning is shown.</p>;
  return <>{contents(preview, items)}{cut}</>;
}

function contents(preview: OutputPreview, items: readonly unknown[]): JSX.Element {
  if (preview.stored) return <Stored stored={preview.stored} preview={preview.preview} />;
  if (preview.kind === "table" && preview.columns) return <Records columns={preview.columns} rows={items} />;
  if (preview.kind === "numbers") return <Numbers values={items.filter((each): each is number => typeof each === "number")} />;
  if (preview.kind === "text") return <div class="text-preview"><CopyButton text={preview.text ?? ""} label="Copy the text" /><pre tabIndex={0} aria-label="Text">{preview.text}</pre></div>;
  if (preview.keys) {
    const shown = Object.fromEntries(preview.keys.map((key) => [key.name, key.is_shown ? key.value : "(long: not shown)"]));
    return preview.keys.length ? <Tree value={Object.assign(Object.create(null) as object, shown)} label="Output" depth={2} /> : <Empty title="An empty object" />;
  }
  if (preview.items) return items.length ? <Tree value={items} label="Output" depth={1} /> : <p><code class="value">[]</code> <span class="dim">an empty list</span></p>;
  return <p><Leaf value={preview.value} /></p>;
}

function Records({ columns, rows }: { columns: readonly string[]; rows: readonly unknown[] }): JSX.Element {
  return (
    <div class="records" tabIndex={0} role="region" aria-label="Rows of the output">
      <table>
        <thead><tr><th scope="col"><span class="only-read">Number</span></th>{columns.map((name) => <th scope="col" key={name} class={typeof cell(rows[0], name) === "number" ? "number" : undefined}>{name}</th>)}</tr></thead>
        <tbody>
          {rows.map((row, place) => (
            <tr key={place}>
              <th scope="row" class="number">{grouped(place)}</th>
              {columns.map((name) => <td key={name} class={typeof cell(row, name) === "number" ? "number" : undefined}>{short(cell(row, name))}</td>)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function cell(row: unknown, name: string): unknown {
  return typeof row === "object" && row !== null && Object.hasOwn(row, name) ? (row as Record<string, unknown>)[name] : undefined;
}

function short(value: unknown): string {
  if (value === undefined) return "";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > 200 ? `${text.slice(0, 200)}…` : text;
}

function Numbers({ values }: { values: readonly number[] }): JSX.Element {
  const sum = values.reduce((total, each) => total + each, 0);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const rounded = (value: number): string => String(Math.round(value * 1000) / 1000);
  return (
    <div class="numbers">
      <Sparkline values={values} width={320} height={64} label={`${count(values.length, "number")} from ${low} to ${high}`} />
      <dl class="pairs">
        {([["least", low], ["mean", sum / values.length], ["most", high]] as const).map(([name, value]) => <div key={name}><dt>{name}</dt><dd class="number">{rounded(value)}</dd></div>)}
      </dl>
      <p class="number-list">{values.slice(0, 200).map(rounded).join(", ")}{values.length > 200 && " …"}</p>
    </div>
  );
}
