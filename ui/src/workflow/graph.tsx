/** The tasks of the definition by layer: a drawing for small ones, and the same as a list. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { WorkflowWithDefinition } from "../api.d.ts";
import { layersOf, type TaskDefinition, tasksOf } from "../definition.ts";
import { Drawer } from "../parts/drawer.tsx";
import { Empty } from "../parts/empty.tsx";
import { Search } from "../parts/form.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { currentQuery, setQuery } from "../router.ts";
import { count, grouped } from "../words.ts";
import { NODE_HEIGHT, NODE_WIDTH, placed } from "./layout.ts";

/** More boxes than this are a mat in which no name can be read. */
const MOST_DRAWN = 150;

type Row = TaskDefinition & { layer: number };

const COLUMNS: readonly Column<Row>[] = [
  { key: "layer", head: "Layer", width: "3.5rem", align: "right", wide: true, cell: (task) => <span class="dim number">{task.layer + 1}</span> },
  { key: "name", head: "Task", width: "minmax(8rem, 2fr)", cell: (task) => <b>{task.name}{task.isFanOut && <span class="dim"> ×n</span>}</b> },
  { key: "after", head: "After", width: "minmax(6rem, 2fr)", cell: (task) => <span class="dim">{task.dependsOn.join(", ") || "–"}</span> },
  { key: "does", head: "Does", width: "minmax(6rem, 3fr)", wide: true, cell: (task) => <code class="dim" title={task.does}>{task.does}</code> },
  { key: "executor", head: "Executor", width: "6rem", wide: true, cell: (task) => <span class="dim">{task.executor}</span> },
];

export function DefinitionGraph({ workflow }: { workflow: WorkflowWithDefinition }): JSX.Element {
  const rows = useMemo(() => {
    const tasks = tasksOf(workflow.definition);
    const layers = layersOf(tasks);
    return tasks.map((task): Row => ({ ...task, layer: layers.get(task.name) ?? 0 })).sort((a, b) => a.layer - b.layer);
  }, [workflow]);
  const text = currentQuery.value.get("find") ?? "";
  const selected = currentQuery.value.get("task");
  const chosen = rows.find((row) => row.name === selected);
  const shown = useMemo(() => rows.filter((row) => row.name.toLowerCase().includes(text.toLowerCase())), [rows, text]);
  const open = (name: string): void => setQuery({ task: name }, { push: true });
  if (rows.length === 0) return <Empty title="The definition cannot be read" icon="warn">{workflow.unreadable ?? "It has no tasks."}</Empty>;
  return (
    <div class="beside">
      <div class="definition">
        {rows.length <= MOST_DRAWN ? <Drawing rows={rows} selected={selected} open={open} /> : <p class="dim note">{grouped(rows.length)} tasks in {count(1 + Math.max(...rows.map((row) => row.layer)), "layer")}. So many are listed, not drawn; a run's own graph shows the part that matters.</p>}
        {rows.length > 12 && <div class="page-bar"><Search label="Task" placeholder="Filter tasks" value={text} onInput={(find) => setQuery({ find })} /></div>}
        {shown.length === 0 ? <Empty title="No task fits" onClear={() => setQuery({ find: null })} /> : <Table label="Tasks by layer" rows={shown} columns={COLUMNS} rowKey={(row) => row.name} selected={selected} onOpen={(row) => open(row.name)} sortParam="order" />}
      </div>
      {chosen && <Details task={chosen} all={rows} open={open} />}
    </div>
  );
}

function Drawing({ rows, selected, open }: { rows: readonly Row[]; selected: string | null; open: (name: string) => void }): JSX.Element {
  const { nodes, edges, width, height } = useMemo(() => placed(rows), [rows]);
  return (
    <div class="drawing" tabIndex={0} role="img" aria-label={`${count(rows.length, "task")}; the list below has the same`}>
      <svg width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true">
        {edges.map((edge) => <path key={`${edge.from} ${edge.to}`} class={`edge${selected !== null && (edge.from === selected || edge.to === selected) ? " is-near" : ""}`} d={edge.path} />)}
        {nodes.map(({ task, x, y }) => (
          <g key={task.name} class={`node${task.name === selected ? " is-selected" : ""}`} transform={`translate(${x} ${y})`} onClick={() => open(task.name)}>
            {task.isFanOut && <rect class="node-behind" x="4" y="4" width={NODE_WIDTH} height={NODE_HEIGHT} rx="7" />}
            <rect width={NODE_WIDTH} height={NODE_HEIGHT} rx="7" />
            <text x="12" y="18" class="node-name">{cut(task.name, 22)}</text>
            <text x="12" y="33" class="node-does">{cut(task.does || task.executor, 28)}</text>
            <title>{task.name}</title>
          </g>
        ))}
      </svg>
    </div>
  );
}

function Details({ task, all, open }: { task: Row; all: readonly Row[]; open: (name: string) => void }): JSX.Element {
  const after = all.filter((each) => each.dependsOn.includes(task.name)).map((each) => each.name);
  return (
    <Drawer title={task.name} onClose={() => setQuery({ task: null })}>
      <dl class="definition-facts">
        <div><dt>Does</dt><dd><code>{task.does || "–"}</code></dd></div>
        <div><dt>Executor</dt><dd>{task.executor}</dd></div>
        <div><dt>After</dt><dd><Names of={task.dependsOn} open={open} /></dd></div>
        <div><dt>Before</dt><dd><Names of={after} open={open} /></dd></div>
        {task.isFanOut && <div><dt>Fan-out</dt><dd>one instance for each item</dd></div>}
        {task.options.map(([name, value]) => <div key={name}><dt>{name.replaceAll("_", " ")}</dt><dd><code>{value}</code></dd></div>)}
      </dl>
    </Drawer>
  );
}

const SHOWN_NAMES = 30;

function Names({ of, open }: { of: readonly string[]; open: (name: string) => void }): JSX.Element {
  if (of.length === 0) return <span class="dim">nothing</span>;
  return <span class="names">{of.slice(0, SHOWN_NAMES).map((name) => <button type="button" class="button small" key={name} onClick={() => open(name)}>{name}</button>)}{of.length > SHOWN_NAMES && <span class="dim">and {of.length - SHOWN_NAMES} more</span>}</span>;
}

function cut(text: string, most: number): string {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}
