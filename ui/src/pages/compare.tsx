/** What is different between two runs? */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { DefinitionDifference, Pair, Run, RunDifference, TaskDifference } from "../api.d.ts";
import { changeOf, endedDifferently, sentences, shown, slower } from "../compare/words.ts";
import { useLoad } from "../data/read.ts";
import { spans } from "../log/ansi.ts";
import type { PageProps } from "../pages.ts";
import { Prose } from "../parts/command.tsx";
import { Partial } from "../parts/empty.tsx";
import { Icon, type IconName } from "../parts/icons.tsx";
import { Page, Section } from "../parts/page.tsx";
import { RunState, State } from "../parts/state.tsx";
import { Ago, Took } from "../parts/time.tsx";
import { href, path } from "../router.ts";
import { duration, shortId, taskName } from "../words.ts";

const FIRST = 20;
const MARKS: Record<string, IconName> = { ended: "warn", params: "filter", definition: "workflows", tasks: "runs", time: "schedules", same: "check" };

export default function Compare({ params }: PageProps): JSX.Element {
  const [a = "", b = ""] = [params["a"], params["b"]];
  const read = useLoad(`compare ${a} ${b}`, async (source, signal) => {
    const run = async (id: string): Promise<Run> => (await source.get("/runs/{run}/summary", { run: id }, { signal, seconds: 30 })).run;
    const [difference, first, second] = await Promise.all([source.get("/runs/{run}/diff/{other}", { run: a, other: b }, { signal, seconds: 30 }), run(a), run(b)]);
    return { difference, first, second };
  });
  const workflow = read.data.value?.second.workflow;
  return (
    <Page
      title={`${shortId(a)} and ${shortId(b)}`}
      heading={<>{workflow ?? "Runs"} <span class="dim">two runs compared</span></>}
      crumbs={[["runs", "Runs"], ...(workflow ? [[path("workflows", workflow), workflow] as const] : []), [path("runs", b), shortId(b)]]}
      actions={<a class="button" href={href(path("runs", b, "compare", a))}>Swap</a>}
      read={read}
      what="both runs"
      gone="One of these runs does not exist, or retention has removed it"
      command={`ork runs diff ${shortId(a)} ${shortId(b)}`}
    >
      {({ difference, first, second }) => <Contents found={difference} first={first} second={second} />}
    </Page>
  );
}

function Contents({ found, first, second }: { found: RunDifference; first: Run; second: Run }): JSX.Element {
  const differing = endedDifferently(found.tasks);
  const changed = slower(found.tasks);
  return (
    <div class="compare">
      <div class="compare-runs"><RunCard run={first} name="First" /><RunCard run={second} name="Second" /></div>
      <Section title="What is different">
        <ul class="compare-words">
          {sentences(found).map(({ kind, text }) => <li key={text}><Icon name={MARKS[kind] ?? "right"} /><span><Prose text={text} /></span></li>)}
        </ul>
      </Section>
      {Object.keys(found.params).length > 0 && <Section title="Params"><Pairs pairs={Object.entries(found.params)} head="Param" /></Section>}
      {found.definition && <Definition found={found.definition} workflow={second.workflow} versions={[first.version, second.version]} />}
      {differing.length > 0 && <Ended tasks={differing} first={first} second={second} />}
      {changed.length > 0 && <Durations tasks={changed} run={second.id} />}
      {found.partial && <p class="partial">These runs are large: only tasks that ended differently were compared, and some of them may be missing.</p>}
    </div>
  );
}

function RunCard({ run, name }: { run: Run; name: string }): JSX.Element {
  return (
    <section class="compare-run" aria-label={`${name} run`}>
      <h2><span class="dim">{name}</span> <a href={href(path("runs", run.id))}><code>{shortId(run.id)}</code></a> <RunState run={run} /></h2>
      <p class="dim"><Took start={run.started_at} end={run.finished_at} /> · created <Ago at={run.created_at} /> · {run.trigger} · version <code title={run.version}>{run.version.slice(0, 8)}</code></p>
    </section>
  );
}

function Pairs({ pairs, head }: { pairs: readonly (readonly [string, Pair])[]; head: string }): JSX.Element {
  return (
    <div class="compare-table" tabIndex={0} role="region" aria-label={head}>
      <table>
        <thead><tr><th scope="col">{head}</th><th scope="col">First</th><th scope="col">Second</th></tr></thead>
        <tbody>{pairs.map(([name, pair]) => <tr key={name}><th scope="row">{name}</th><td><code>{shown(pair.a)}</code></td><td><code>{shown(pair.b)}</code></td></tr>)}</tbody>
      </table>
    </div>
  );
}

function Definition({ found, workflow, versions }: { found: DefinitionDifference; workflow: string; versions: readonly [string, string] }): JSX.Element {
  const rows: [string, string][] = [
    ...found.added.map((name): [string, string] => [name, "added"]),
    ...found.removed.map((name): [string, string] => [name, "removed"]),
    ...Object.entries(found.changed).map(([name, keys]): [string, string] => [name, keys.join(", ")]),
    ...found.keys.map((key): [string, string] => [`the workflow's ${key}`, "changed"]),
  ];
  return (
    <Section title="Definition" aside={<a href={href(`${path("workflows", workflow)}?view=versions`)}>versions {versions.map((each) => each.slice(0, 8)).join(" and ")}</a>}>
      <div class="compare-table" tabIndex={0} role="region" aria-label="Definition">
        <table>
          <thead><tr><th scope="col">Task</th><th scope="col">What was changed</th></tr></thead>
          <tbody>{rows.map(([name, what]) => <tr key={`${name} ${what}`}><th scope="row">{name}</th><td>{what}</td></tr>)}</tbody>
        </table>
      </div>
    </Section>
  );
}

function Ended({ tasks, first, second }: { tasks: readonly TaskDifference[]; first: Run; second: Run }): JSX.Element {
  const [most, setMost] = useState(FIRST);
  return (
    <Section title="Tasks that ended differently">
      <ul class="compare-tasks">
        {tasks.slice(0, most).map((task) => <EndedTask key={`${task.name} ${task.index}`} task={task} first={first.id} second={second.id} />)}
      </ul>
      {tasks.length > most && <Partial shown={most} of={tasks.length} what="tasks" more={() => setMost(most + 200)} />}
    </Section>
  );
}

function EndedTask({ task, first, second }: { task: TaskDifference; first: string; second: string }): JSX.Element {
  const [before, after] = [task.status?.a, task.status?.b];
  // Attempt 0 is the last one.
  const to = (run: string, ...more: string[]): string => href(path("runs", run, "tasks", task.name, task.index ?? 0, 0, ...more));
  const error = task.error?.b ?? task.error?.a;
  return (
    <li>
      <p class="compare-task">
        <a href={to(second)}>{taskName(task.name, task.index)}</a>
        <span class="compare-states">{typeof before === "string" ? <State of={before} /> : <span class="dim">missing</span>}<span aria-hidden="true">→</span><span class="only-read">then</span>{typeof after === "string" ? <State of={after} /> : <span class="dim">missing</span>}</span>
        {typeof error === "string" && <span class="compare-error">{error}</span>}
      </p>
      {task.log && (
        <figure class="compare-log">
          <figcaption>The logs differ from line {task.log.line} on: <a href={`${to(first, "log")}#L${task.log.line}`}>first</a>, <a href={`${to(second, "log")}#L${task.log.line}`}>second</a></figcaption>
          <pre tabIndex={0} aria-label="First differing line"><Side mark="−" text={task.log.a} /><Side mark="+" text={task.log.b} /></pre>
        </figure>
      )}
    </li>
  );
}

function Side({ mark, text }: { mark: string; text: string | null }): JSX.Element {
  return <span class={mark === "+" ? "is-second" : "is-first"}><span class="compare-mark">{mark} </span>{text === null ? <i>the log ends here</i> : spans(text).map((span) => span.text).join("")}</span>;
}

function Durations({ tasks, run }: { tasks: readonly TaskDifference[]; run: string }): JSX.Element {
  const [most, setMost] = useState(FIRST);
  const longest = Math.max(...tasks.slice(0, most).flatMap(({ seconds }) => [seconds.a ?? 0, seconds.b ?? 0]));
  return (
    <Section title="Tasks that took longer or shorter">
      <div class="compare-table" tabIndex={0} role="region" aria-label="Durations">
        <table>
          <thead><tr><th scope="col">Task</th><th scope="col" class="at-right">First</th><th scope="col" class="at-right">Second</th><th scope="col" class="wide-only" /><th scope="col">Change</th></tr></thead>
          <tbody>
            {tasks.slice(0, most).map(({ name, index, seconds }) => (
              <tr key={`${name} ${index}`}>
                <th scope="row"><a href={href(path("runs", run, "tasks", name, index ?? 0, 0))}>{taskName(name, index)}</a></th>
                <td class="number at-right">{duration(seconds.a)}</td>
                <td class="number at-right">{duration(seconds.b)}</td>
                <td class="wide-only"><span class="compare-bars" aria-hidden="true"><span style={{ width: `${((seconds.a ?? 0) / longest) * 100}%` }} /><span style={{ width: `${((seconds.b ?? 0) / longest) * 100}%` }} /></span></td>
                <td class="number">{changeOf(seconds)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {tasks.length > most && <Partial shown={most} of={tasks.length} what="tasks" more={() => setMost(most + 200)} />}
    </Section>
  );
}
