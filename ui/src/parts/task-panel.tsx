/** One task or instance: why, log, data, tries and definition. A drawer beside the run, and the contents of its own page. */

import type { ComponentChildren, JSX } from "preact";
import { type Read, useRead } from "../data/read.ts";
import { source } from "../data/session.ts";
import { ShortLog } from "../log/short.tsx";
import { changedQuery, currentPath, currentQuery, go, href, link, path } from "../router.ts";
import { useShortcuts } from "../shortcuts.ts";
import { Data } from "../task/data.tsx";
import { attemptOf, type FoundTask, isOfRun, logCommand, target, type TaskId, taskHref, useTask } from "../task/model.ts";
import { Spec } from "../task/spec.tsx";
import { Tries } from "../task/tries.tsx";
import { Why } from "../task/why.tsx";
import { argument, count, isFinal, shortId } from "../words.ts";
import { Action } from "./action.tsx";
import { CommandLine, CopyButton } from "./command.tsx";
import { Drawer } from "./drawer.tsx";
import { Empty } from "./empty.tsx";
import { Icon } from "./icons.tsx";
import { Facts, Loaded } from "./page.tsx";
import { Counts, State } from "./state.tsx";
import { currentTab, type Tab, Tabs } from "./tabs.tsx";
import { Ago, Took } from "./time.tsx";

interface TaskPanelProps {
  run: string;
  task: string;
  /** Null for a task without instances, and for a fan-out itself. */
  index: number | null;
  /** Default: the attempt of `?try=`, or the last. */
  attempt?: number;
  onClose: () => void;
}

/** A drawer: `<div class="beside"><div>…</div>{open && <TaskPanel …/>}</div>`. Its own state is `?panel=` and `?try=`. */
export function TaskPanel({ run, task, index, attempt, onClose }: TaskPanelProps): JSX.Element {
  const id = { run, task, index };
  const read = useTask(id);
  const found = read.data.value;
  const wanted = attempt ?? (Number(currentQuery.value.get("try")) || undefined);
  const shown = found && attemptOf(found, wanted);
  const page = path("runs", run, "tasks", task, index ?? 0, shown?.attempt ?? 1);
  return (
    <Drawer
      title={<span class="task-title">{found && <State of={shown?.status ?? found.task.status} quiet />}<span>{target(id)}</span>{shown && <span class="dim">attempt {shown.attempt} of {found.attempts.length}</span>}</span>}
      onClose={onClose}
      actions={<a class="button plain small" href={href(page)} title="Open as a page">Open</a>}
    >
      <TaskDetails id={id} read={read} attempt={shown?.attempt} hrefOfTry={(number) => href(`${currentPath.value}${changedQuery(currentQuery.value, { try: number })}`)} />
    </Drawer>
  );
}

const TABS: readonly Tab[] = [
  { key: "why", label: "Why" },
  { key: "log", label: "Log" },
  { key: "data", label: "Data" },
  { key: "tries", label: "Attempts" },
  { key: "spec", label: "Definition" },
];

interface TaskDetailsProps {
  id: TaskId;
  read: Read<FoundTask>;
  attempt: number | undefined;
  hrefOfTry: (attempt: number) => string;
}

/** The tabs, with the actions below. */
export function TaskDetails({ id, read, attempt, hrefOfTry }: TaskDetailsProps): JSX.Element {
  return (
    <div class="task">
      <Tabs tabs={TABS} label="About this task" param="panel" />
      <Loaded read={read} what="the task" gone="There is no such run or task, or retention has removed it">
        {(found) => (
          <>
            <div class="task-body">{contents(id, found, attempt, hrefOfTry)}</div>
            <TaskActions id={id} found={found} attempt={attempt} />
          </>
        )}
      </Loaded>
    </div>
  );
}

function contents(id: TaskId, found: FoundTask, attempt: number | undefined, hrefOfTry: (attempt: number) => string): ComponentChildren {
  const isFanOut = found.task.instances !== null;
  switch (currentTab(TABS, "panel")) {
    case "log": return isFanOut ? <Instances id={id} found={found} /> : <ShortLog id={id} attempt={attempt} status={found.attempts.find((each) => each.attempt === attempt)?.status} />;
    case "data": return <Data id={id} found={found} />;
    case "tries": return isFanOut ? <Instances id={id} found={found} /> : <Tries attempts={found.attempts} shown={attempt} hrefOf={hrefOfTry} />;
    case "spec": return <Spec version={found.run.version} workflow={found.run.workflow} task={found.task} />;
    default: return (
      <>
        <Head found={found} attempt={attempt} />
        <Why id={id} found={found} attempt={attempt} />
        {isFanOut ? <Instances id={id} found={found} /> : attempt !== undefined && <ShortLog id={id} attempt={attempt} status={found.attempts.find((each) => each.attempt === attempt)?.status} />}
      </>
    );
  }
}

function Head({ found, attempt }: { found: FoundTask; attempt: number | undefined }): JSX.Element {
  const { task } = found;
  const shown = found.attempts.find((each) => each.attempt === attempt);
  const [start, end] = shown ? [shown.started_at, shown.finished_at] : [task.started_at, task.finished_at];
  return (
    <Facts of={[
      ["Ran", <Took start={start} end={end} />],
      ...(shown ? [["Waited", <Took start={shown.dispatched_at} end={shown.started_at} />] as const] : []),
      ...(end ? [["Ended", <Ago at={end} />] as const] : []),
    ]} />
  );
}

const FAILED_SHOWN = 100;

/** The instances of a fan-out: how many in each state, and links to those that failed. */
function Instances({ id, found }: { id: TaskId; found: FoundTask }): JSX.Element {
  const counts = useRead("/runs/{run}/summary", { run: id.run }, { live: isOfRun(id.run) });
  const failed = useRead("/runs/{run}/tasks", { run: id.run, name: id.task, status: ["failed"], limit: FAILED_SHOWN }, { live: isOfRun(id.run) });
  const ours = counts.data.value?.tasks.find((each) => each.name === id.task)?.instances;
  return (
    <>
      <p>{count(found.task.instances ?? 0, "instance")} {ours && <Counts of={ours} />}</p>
      <Loaded read={failed} what="the failed instances">
        {({ tasks, cursor }) => {
          const instances = tasks.filter((each) => each.index !== null);
          if (instances.length === 0) return <Empty title="No instance has failed" icon="check" />;
          return (
            <ul class="references">
              {instances.map((each) => <li key={each.index}><a href={taskHref({ run: id.run, task: each.name, index: each.index })}><State of="failed" quiet />{target({ task: each.name, index: each.index })}</a></li>)}
              {cursor !== null && <li class="dim">the first {instances.length}; there are more</li>}
            </ul>
          );
        }}
      </Loaded>
    </>
  );
}

function TaskActions({ id, found, attempt }: { id: TaskId; found: FoundTask; attempt: number | undefined }): JSX.Element {
  const name = target(id);
  const short = shortId(id.run);
  const isLast = attempt === found.attempts.at(-1)?.attempt;
  const reason = !isFinal(found.run.status) ? "The run has not ended yet." : found.task.status === "success" ? "The task has succeeded." : null;
  const retry = `ork retry ${short} --task ${argument(name)}`;
  useShortcuts([
    { keys: "l", does: "Open the log", group: "This task", run: () => { if (attempt !== undefined) go(logPath(id, attempt)); } },
  ]);
  return (
    <footer class="task-foot">
      <div class="task-actions">
        <Action label="Retry this" icon="retry" role="operator" small command={retry} reason={reason} done={`Retrying ${name}`} run={() => source.act("POST /runs/{run}/retry", { run: id.run }, { task: name })} />
        {attempt !== undefined && <a class="button small" href={href(logPath(id, attempt))} title="The whole log (l)"><Icon name="runs" />Open log</a>}
        <CopyButton text={link()} label="Copy link" quiet={false} />
      </div>
      <CommandLine command={logCommand(id, attempt, isLast)} />
    </footer>
  );
}

function logPath(id: TaskId, attempt: number): string {
  return path("runs", id.run, "tasks", id.task, id.index ?? 0, attempt, "log");
}
