/** What can be done with a run. */

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import type { RunSummary } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { source } from "../data/session.ts";
import { Action } from "../parts/action.tsx";
import { CommandLine } from "../parts/command.tsx";
import { Icon } from "../parts/icons.tsx";
import { notify } from "../parts/notice.tsx";
import { go, href, path } from "../router.ts";
import { useShortcuts } from "../shortcuts.ts";
import { argument, count, isFinal, shortId, taskName } from "../words.ts";
import type { Selection } from "./model.ts";

interface RunActionsProps {
  summary: RunSummary;
  selected: Selection | null;
}

export function RunActions({ summary, selected }: RunActionsProps): JSX.Element {
  const { run } = summary;
  const short = shortId(run.id);
  const isEnded = isFinal(run.status);
  const hasFailed = run.status === "failed" || run.status === "cancelled";
  const retry = useRef<HTMLSpanElement>(null);
  const cancel = useRef<HTMLSpanElement>(null);
  const press = (of: typeof retry): void => of.current?.querySelector("button")?.click();
  const compare = useLastSuccess(run);
  const group = "This run";
  useShortcuts([
    { keys: "R", does: "Retry failed", group, run: () => press(retry) },
    { keys: "x", does: "Cancel", group, run: () => press(cancel) },
    { keys: "=", does: "Compare with the last success", group, run: () => (compare ? go(compare) : notify("info", "No earlier run of this workflow succeeded.")) },
  ]);
  return (
    <>
      <span ref={retry} class={hasFailed ? undefined : "is-hidden"}>
        <Action label="Retry failed" icon="retry" kind="primary" role="operator" command={`ork retry ${short}`} reason={hasFailed ? null : "Nothing to retry: the run has not failed."} run={() => source.act("POST /runs/{run}/retry", { run: run.id }, {})} done={`Retrying ${short}`} />
      </span>
      <span ref={cancel} class={isEnded ? "is-hidden" : undefined}>
        <Action label="Cancel" icon="stop" kind="danger" role="operator" command={`ork cancel ${short}`} ask="Running tasks are stopped. Tasks that wait are not started. What has succeeded stays." reason={isEnded ? "The run has ended." : run.cancel_requested_at ? "It is being cancelled." : null} run={() => source.act("POST /runs/{run}/cancel", { run: run.id }, {})} done={`Cancelling ${short}`} />
      </span>
      {!isEnded && (run.status === "paused"
        ? <Action label="Resume" icon="play" role="operator" command={`ork resume ${short}`} run={() => source.act("POST /runs/{run}/resume", { run: run.id }, {})} done={`${short} continues`} />
        : <Action label="Pause" icon="pause" role="operator" command={`ork pause ${short}`} run={() => source.act("POST /runs/{run}/pause", { run: run.id }, {})} done={`${short} starts no new tasks`} />)}
      {compare && <a class="button" href={href(compare)} title="Compare with the last success (=)">Compare</a>}
      <More summary={summary} selected={selected} />
    </>
  );
}

/** Less frequent actions, each with its command. */
function More({ summary, selected }: RunActionsProps): JSX.Element {
  const { run, progress } = summary;
  const short = shortId(run.id);
  const box = useRef<HTMLDetailsElement>(null);
  const close = (): void => { if (box.current) box.current.open = false; };
  const name = selected && taskName(selected.task, selected.index);
  const open = isFinal(run.status) ? null : "The run has not ended.";
  return (
    <details class="menu run-menu" ref={box} onKeyDown={(event) => { if (event.key === "Escape") { close(); event.stopPropagation(); } }}>
      <summary class="button" aria-label="More actions"><Icon name="more" /></summary>
      <div class="menu-body">
        {source.canAct && (
          <>
            <Action label={name ? `Retry from ${name.slice(0, 40)}` : "Retry from here"} icon="retry" role="operator" command={`ork retry ${short} --task ${argument(name ?? "TASK")}`} reason={open ?? (name ? null : "Select a task first.")} ask={`${name}, and everything downstream of it, runs again.`} run={() => source.act("POST /runs/{run}/retry", { run: run.id }, { task: name })} done={`Retrying ${short} from ${name}`} onDone={close} />
            <Action label="Retry all" icon="retry" role="operator" command={`ork retry ${short} --all`} reason={open} ask={`All ${count(progress.total, "task")} run again, including those that succeeded.`} run={() => source.act("POST /runs/{run}/retry", { run: run.id }, { everything: true })} done={`Retrying all tasks of ${short}`} onDone={close} />
          </>
        )}
        <div class="menu-note"><span class="dim">Report: one page to send or keep</span><CommandLine command={`ork report ${short}`} /></div>
      </div>
    </details>
  );
}

/** The address of the comparison with the newest earlier success of the workflow. */
function useLastSuccess(run: RunSummary["run"]): string | null {
  const read = useRead("/runs/{run}/previous-success", { run: run.id });
  const last = read.data.value?.run;
  return last ? path("runs", last.id, "compare", run.id) : null;
}
