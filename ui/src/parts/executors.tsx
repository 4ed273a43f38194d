/** What tasks run in: executors, and worker configs with their sizes. */

import type { JSX } from "preact";
import type { ExecutorEntry, WorkerConfig } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { duration } from "../words.ts";
import { Loaded, Section } from "./page.tsx";
import { type Column, Table } from "./table.tsx";

/** A section; nothing without worker configs. */
export function Configs(): JSX.Element | null {
  const read = useRead("/workers", { limit: 1000 });
  if (read.data.value?.workers.length === 0) return null;
  return (
    <Section title="Worker configs" aside={<code>ork workers</code>}>
      <Loaded read={read} what="the worker configs">{({ workers }) => <Table label="Worker configs" rows={workers} columns={CONFIGS} rowKey={(each) => each.name} sortParam="configs" />}</Loaded>
    </Section>
  );
}

const CONFIGS: readonly Column<WorkerConfig>[] = [
  { key: "name", head: "Name", width: "minmax(6rem, 1fr)", cell: (each) => each.name },
  { key: "where", head: "Where", width: "6rem", cell: (each) => each.where ?? "local" },
  { key: "cpu", head: "CPU", width: "4rem", align: "right", cell: (each) => each.cpu ?? "–" },
  { key: "memory", head: "Memory", width: "6rem", align: "right", cell: (each) => memory(each.memory) },
  { key: "timeout", head: "Timeout", width: "6rem", align: "right", wide: true, cell: (each) => duration(each.timeout) },
  { key: "place", head: "Place", width: "minmax(8rem, 2fr)", wide: true, cell: (each) => <span class="dim">{[each.image, each.gpu, each.region, each.host, each.network].filter(Boolean).join(" · ") || "–"}</span> },
  { key: "env", head: "Variables", width: "minmax(6rem, 1fr)", wide: true, cell: (each) => <span class="dim">{each.env.join(", ") || "–"}</span> },
];

/** What tasks can name as their executor, with its own limit. */
export function Executors(): JSX.Element {
  const read = useRead("/installation", {});
  return (
    <Section title="Executors">
      <Loaded read={read} what="the executors">{({ executors }) => <ul class="chips">{executors.map((each) => <Executor of={each} key={each.name} />)}</ul>}</Loaded>
    </Section>
  );
}

function Executor({ of }: { of: ExecutorEntry }): JSX.Element {
  return <li><b>{of.name}</b>{of.max_workers !== null && <span> at most {of.max_workers}</span>}{of.class && <code class="dim">{of.class}</code>}</li>;
}

const UNITS = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]] as const;

/** `512 MiB`: memory is written in powers of two. */
function memory(size: number | null): string {
  if (size === null) return "–";
  const [unit, name] = UNITS.find(([each]) => size >= each) ?? [1, "B"];
  return `${Number((size / unit).toFixed(1))} ${name}`;
}
