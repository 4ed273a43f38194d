/** Why did this attempt end like this? */

import type { JSX } from "preact";
import { useLoad } from "../data/read.ts";
import type { PageProps } from "../pages.ts";
import { Page, Waiting } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { TaskDetails } from "../parts/task-panel.tsx";
import { ProblemView } from "../parts/problem.tsx";
import { changedQuery, currentQuery, href, path } from "../router.ts";
import { attemptOf, indexOf, logCommand, target, useTask } from "../task/model.ts";
import { shortId } from "../words.ts";

export default function TaskPage({ params }: PageProps): JSX.Element {
  const [run = "", task = "", index = "0"] = [params["id"], params["name"], params["index"]];
  const read = useLoad(`index ${run} ${task} ${index}`, async (source, signal) => ({ index: await indexOf(source, run, task, Number(index), signal) }));
  const found = read.data.value;
  const problem = read.problem.value;
  if (!found) return <Page title={`${task} of ${shortId(run)}`} crumbs={crumbs(run)}>{problem ? <ProblemView problem={problem} again={read.reload} gone="There is no such run or task, or retention has removed it" /> : <Waiting what="the task" />}</Page>;
  return <OneTask run={run} task={task} index={found.index} number={Number(params["attempt"])} />;
}

function OneTask({ run, task, index, number }: { run: string; task: string; index: number | null; number: number }): JSX.Element {
  const id = { run, task, index };
  const read = useTask(id);
  const found = read.data.value;
  const shown = found && attemptOf(found, number);
  return (
    <Page
      title={`${target(id)} of ${shortId(run)}`}
      heading={<>{found && <State of={shown?.status ?? found.task.status} />} {target(id)} {shown && <span class="dim">attempt {shown.attempt} of {found.attempts.length}</span>}</>}
      crumbs={crumbs(run, found?.run.workflow)}
      command={logCommand(id, shown?.attempt, shown === found?.attempts.at(-1))}
      live
    >
      <TaskDetails id={id} read={read} attempt={shown?.attempt} hrefOfTry={(each) => href(`${path("runs", run, "tasks", task, index ?? 0, each)}${changedQuery(currentQuery.value, {})}`)} />
    </Page>
  );
}

function crumbs(run: string, workflow?: string): [string, string][] {
  return [["runs", "Runs"], ...(workflow ? [[path("workflows", workflow), workflow] as [string, string]] : []), [path("runs", run), shortId(run)]];
}
