/** Why did this attempt end like this? */

import type { JSX } from "preact";
import type { AttemptPage } from "../api.d.ts";
import { useLoad, useRead } from "../data/read.ts";
import type { Source } from "../data/source.ts";
import type { PageProps } from "../pages.ts";
import { Prose } from "../parts/command.tsx";
import { Empty } from "../parts/empty.tsx";
import { Facts, Loaded, Page, Section } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { Clock, Took } from "../parts/time.tsx";
import { path } from "../router.ts";
import { argument, bytes, shortId, taskName } from "../words.ts";

const TAIL = 64 * 1024;

export default function TaskPage({ params }: PageProps): JSX.Element {
  const [run = "", name = "", index = "0", number = "1"] = [params["id"], params["name"], params["index"], params["attempt"]];
  const attempts = useLoad(`attempts ${run} ${name} ${index}`, (source, signal) => attemptsOf(source, { run, task: name, limit: 100 }, Number(index), signal), { live: true });
  const found = attempts.data.value?.attempts.find((each) => each.attempt === Number(number));
  const full = taskName(name, found?.index);
  return (
    <Page
      title={`${full} of ${shortId(run)}`}
      heading={<>{found && <State of={found.status} />} {full} <span class="dim">try {number}</span></>}
      crumbs={[["runs", "Runs"], [path("runs", run), shortId(run)]]}
      read={attempts}
      what="the attempt"
      gone="There is no such run or task, or retention has removed it"
      command={`ork logs ${shortId(run)} ${argument(full)}`}
      live
    >
      {() => (
        <>
          {found && <Facts of={[["Started", <Clock at={found.started_at} />], ["Ran", <Took start={found.started_at} end={found.finished_at} />], ["Exit code", found.exit_code ?? "–"], ["Error", found.failure?.message ?? "–"]]} />}
          <Why run={run} task={full} />
          <LogEnd run={run} name={name} index={Number(index)} number={Number(number)} />
        </>
      )}
    </Page>
  );
}

/** The attempts of an instance. A task without instances has index 0 in addresses, and none in the list. */
async function attemptsOf(source: Source, given: { run: string; task: string; limit: number }, index: number, signal: AbortSignal): Promise<AttemptPage> {
  const found = await source.get("/runs/{run}/attempts", { ...given, index }, { signal });
  return found.attempts.length > 0 || index !== 0 ? found : source.get("/runs/{run}/attempts", given, { signal });
}

function Why({ run, task }: { run: string; task: string }): JSX.Element {
  const read = useRead("/runs/{run}/why", { run, task }, { live: true });
  return <Section title="Why"><Loaded read={read} what="the explanation">{({ why }) => <>{why.map((line) => <p key={line}><Prose text={line} /></p>)}</>}</Loaded></Section>;
}

function LogEnd(given: { run: string; name: string; index: number; number: number }): JSX.Element {
  const read = useLoad(`log ${JSON.stringify(given)}`, (source, signal) => source.bytes("/runs/{run}/tasks/{name}/{index}/attempts/{number}/log", given, -TAIL, undefined, { signal }));
  return (
    <Section title="Log" aside={read.data.value?.size != null && bytes(read.data.value.size)}>
      <Loaded read={read} what="the log">
        {(piece) => (piece.bytes.length === 0 ? <Empty title="The log is empty" icon="runs" /> : <pre class="log" tabIndex={0}>{new TextDecoder().decode(piece.bytes)}</pre>)}
      </Loaded>
    </Section>
  );
}
