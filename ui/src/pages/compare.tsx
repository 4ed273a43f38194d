/** What is different between two runs? */

import type { JSX } from "preact";
import type { RunSummary } from "../api.d.ts";
import { useLoad } from "../data/read.ts";
import type { PageProps } from "../pages.ts";
import { Page } from "../parts/page.tsx";
import { RunState, State } from "../parts/state.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { Took } from "../parts/time.tsx";
import { href, path } from "../router.ts";
import { shortId } from "../words.ts";

interface Pair {
  name: string;
  a: string | null;
  b: string | null;
}

const COLUMNS: readonly Column<Pair>[] = [
  { key: "name", head: "Task", width: "minmax(8rem, 2fr)", cell: (pair) => pair.name },
  { key: "a", head: "First run", cell: (pair) => (pair.a ? <State of={pair.a} /> : "–") },
  { key: "b", head: "Second run", cell: (pair) => (pair.b ? <State of={pair.b} /> : "–") },
];

export default function Compare({ params }: PageProps): JSX.Element {
  const [a = "", b = ""] = [params["a"], params["b"]];
  const read = useLoad(`compare ${a} ${b}`, (source, signal) =>
    Promise.all([source.get("/runs/{run}/summary", { run: a }, { signal }), source.get("/runs/{run}/summary", { run: b }, { signal })]),
  );
  return (
    <Page title={`${shortId(a)} and ${shortId(b)}`} crumbs={[["runs", "Runs"]]} read={read} what="both runs" gone="One of these runs does not exist (any more)" command={`ork runs --diff ${shortId(a)} ${shortId(b)}`}>
      {([first, second]) => (
        <>
          <div class="summary-line">{[first, second].map(({ run }) => <a key={run.id} href={href(path("runs", run.id))}><RunState run={run} /> <code>{shortId(run.id)}</code> <Took start={run.started_at} end={run.finished_at} /></a>)}</div>
          <Table label="Tasks of both runs" rows={pairs(first, second)} columns={COLUMNS} rowKey={(pair) => pair.name} />
        </>
      )}
    </Page>
  );
}

function pairs(first: RunSummary, second: RunSummary): Pair[] {
  const [a, b] = [first, second].map((each) => new Map(each.tasks.map((task) => [task.name, task.status])));
  return [...new Set([...(a?.keys() ?? []), ...(b?.keys() ?? [])])].map((name) => ({ name, a: a?.get(name) ?? null, b: b?.get(name) ?? null }));
}
