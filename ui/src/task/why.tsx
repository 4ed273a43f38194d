/** Why is the task (not) running, what comes next and when? With links to who is waited for, and decisions to take. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Reference, WhyItem } from "../api.d.ts";
import { now } from "../clock.ts";
import { useRead } from "../data/read.ts";
import { source } from "../data/session.ts";
import { Action } from "../parts/action.tsx";
import { Prose } from "../parts/command.tsx";
import { Loaded } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { href, path } from "../router.ts";
import { argument, count, duration, milliseconds, shortId, taskName, utc } from "../words.ts";
import { FailureView } from "./failure.tsx";
import { type FoundTask, isOfRun, kindOfMessage, type TaskId, target, taskHref } from "./model.ts";

export function Why({ id, found, attempt }: { id: TaskId; found: FoundTask; attempt: number | undefined }): JSX.Element {
  const read = useRead("/runs/{run}/why", { run: id.run, task: target(id) }, { live: isOfRun(id.run) });
  const shown = found.attempts.find((each) => each.attempt === attempt);
  const failure = shown ? shown.failure : found.task.failure;
  return (
    <>
      {failure && <FailureView failure={failure} exitCode={shown?.exit_code ?? found.task.exit_code} />}
      {failure && <SameFailures id={id} message={failure.message} />}
      <Loaded read={read} what="the explanation">
        {({ items }) => (
          <ul class="reasons">
            {items.filter((item) => !(failure && item.code === "failed")).map((item, place) => <Reason key={place} id={id} item={item} />)}
          </ul>
        )}
      </Loaded>
    </>
  );
}

function Reason({ id, item }: { id: TaskId; item: WhyItem }): JSX.Element {
  return (
    <li>
      <p><Prose text={item.text} /></p>
      {item.until && <Countdown until={item.until} />}
      {item.refs.length > 0 && <ul class="references">{item.refs.map((each) => <li key={`${each.run} ${each.task} ${each.index}`}><a href={hrefOf(each)}>{nameOf(each, id.run)}</a></li>)}</ul>}
      {item.code === "approval" && <Decision id={id} />}
    </li>
  );
}

/** `in 1m 12s`, down to the second. */
function Countdown({ until }: { until: string }): JSX.Element {
  const left = (milliseconds(until) - now.value) / 1000;
  return <p class="countdown"><time class="number" dateTime={until} title={utc(until)}>{left > 0 ? `in ${duration(Math.ceil(left)).replace(".0s", "s")}` : "any moment"}</time></p>;
}

function Decision({ id }: { id: TaskId }): JSX.Element {
  const [comment, setComment] = useState("");
  const words = `${shortId(id.run)} ${argument(target(id))}${comment ? ` --comment ${argument(comment)}` : ""}`;
  const body = { task: target(id), comment: comment || null };
  return (
    <div class="decision">
      <input aria-label="Comment on the decision" placeholder="Comment (optional)" value={comment} maxLength={1000} onInput={(event) => setComment(event.currentTarget.value)} />
      <Action label="Approve" icon="check" kind="primary" role="operator" command={`ork approve ${words}`} run={() => source.act("POST /runs/{run}/approve", { run: id.run }, body)} done="Approved" />
      <Action label="Reject" icon="close" kind="danger" role="operator" command={`ork reject ${words}`} ask="The task fails, and what depends on it is skipped." run={() => source.act("POST /runs/{run}/reject", { run: id.run }, body)} done="Rejected" />
    </div>
  );
}

const MOST_FAILURES = 500;
const SHOWN_FAILURES = 60;

/** "Same error in 40 others": is it one problem or forty? */
function SameFailures({ id, message }: { id: TaskId; message: string }): JSX.Element | null {
  const [isOpen, setOpen] = useState(false);
  const read = useRead("/runs/{run}/tasks", { run: id.run, status: ["failed"], limit: MOST_FAILURES });
  const page = read.data.value;
  if (!page) return null;
  const kind = kindOfMessage(message);
  const same = page.tasks.filter((each) => each.failure && each.instances === null && !(each.name === id.task && each.index === id.index) && kindOfMessage(each.failure.message) === kind);
  if (same.length === 0) return null;
  const atLeast = page.cursor === null ? "" : "at least ";
  return (
    <div class="same">
      <button type="button" class="button small" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>Same error in {atLeast}{count(same.length, "other")}</button>
      {isOpen && (
        <ul class="references">
          {same.slice(0, SHOWN_FAILURES).map((each) => <li key={`${each.name} ${each.index}`}><a href={taskHref({ run: id.run, task: each.name, index: each.index })}><State of="failed" quiet />{taskName(each.name, each.index)}</a></li>)}
          {same.length > SHOWN_FAILURES && <li class="dim">and {count(same.length - SHOWN_FAILURES, "other")}</li>}
        </ul>
      )}
    </div>
  );
}

function hrefOf({ run, task, index }: Reference): string {
  return task === null ? href(path("runs", run)) : taskHref({ run, task, index });
}

function nameOf({ run, task, index }: Reference, ours: string): string {
  const name = task === null ? "" : taskName(task, index);
  return run === ours ? name || shortId(run) : `${shortId(run)}${name && `/${name}`}`;
}
