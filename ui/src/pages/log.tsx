/** What did this attempt print? */

import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import type { Attempt } from "../api.d.ts";
import { serverNow } from "../clock.ts";
import { asProblem } from "../data/problem.ts";
import { useLoad } from "../data/read.ts";
import { source } from "../data/session.ts";
import { plain } from "../log/ansi.ts";
import { InstanceHits } from "../log/instances.tsx";
import { linesOfHash } from "../log/lines.ts";
import { LogModel } from "../log/model.ts";
import { LogView } from "../log/view.tsx";
import type { PageProps } from "../pages.ts";
import { copy } from "../parts/command.tsx";
import { Select } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { notify, notifyProblem } from "../parts/notice.tsx";
import { Page } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { currentHash, currentQuery, go, href, path } from "../router.ts";
import { useShortcuts } from "../shortcuts.ts";
import { indexOf, logCommand, target } from "../task/model.ts";
import { bytes, count, lookOf, milliseconds, shortId } from "../words.ts";

const FINAL = ["success", "failed", "lost", "timed_out", "cancelled"];
const MOST_COPIED = 4 << 20;

interface Attempts {
  index: number | null;
  attempts: readonly Attempt[];
}

export default function LogPage({ params }: PageProps): JSX.Element {
  const [run = "", task = "", number = 0] = [params["id"], params["name"], Number(params["attempt"]) || 0];
  const given = Number(params["index"]) || 0;
  const read = useLoad(`attempts ${run} ${task} ${given}`, async (from, signal): Promise<Attempts> => {
    const index = await indexOf(from, run, task, given, signal);
    return { index, attempts: (await from.get("/runs/{run}/attempts", { run, task, index, limit: 100 }, { signal })).attempts };
  }, { live: (change) => change.kind === "reset" || change.event.run.id.startsWith(run) });
  const found = read.data.value;
  const attempt = found?.attempts.find((each) => each.attempt === number);
  const last = found?.attempts.at(-1)?.attempt;
  // Attempt 0 is the last one.
  useEffect(() => { if (number === 0 && last !== undefined) go(`${path("runs", run, "tasks", task, given, last, "log")}${location.search}${location.hash}`, { replace: true }); }, [number, last]);
  const id = { run, task, index: found ? found.index : given || null };
  const model = useMemo(() => new LogModel(source, { run, name: task, index: given, number }), [run, task, given, number]);
  const openedAt = useMemo(serverNow, [model]);
  useEffect(() => { if (number > 0) void model.open(); return () => model.close(); }, [model]);
  const back = path("runs", run, "tasks", task, given, number);
  useShortcuts([{ keys: "Escape", does: "Back to the task", group: "Log", run: () => go(back) }]);
  const size = model.size.value;
  const lines = model.lines.value;
  const text = currentQuery.value.get("q") ?? "";
  return (
    <Page
      title={`Log of ${target(id)} of ${shortId(run)}`}
      heading={<>{attempt && <State of={attempt.status} />}<span>{target(id)}</span>{found && <Tries attempts={found.attempts} number={number} hrefOf={(each) => path("runs", run, "tasks", task, given, each, "log")} />}<span class="log-size dim number">{[lines === null ? "" : count(lines, "line"), size === null ? "" : bytes(size)].filter(Boolean).join(" · ")}</span></>}
      crumbs={[["runs", "Runs"], [path("runs", run), shortId(run)], [back, `${target(id)} attempt ${number}`]]}
      actions={
        <>
          {source.canAct && <button type="button" class="button" onClick={() => void download(model)}>Download</button>}
          <CopyLines model={model} />
          <a class="button plain" href={href(back)} aria-label="Close the log" title="Back to the task (Esc)"><Icon name="close" /></a>
        </>
      }
      command={`${logCommand(id, number, number === last)}${attempt && !isEnded(attempt) ? " --follow" : ""}`}
      live
      fill
    >
      <LogView model={model} isRunning={attempt !== undefined && !isEnded(attempt)} mayGrow={attempt !== undefined && mayGrow(attempt, openedAt)} startedAt={attempt?.started_at ?? null} />
      {id.index !== null && text !== "" && !currentQuery.value.has("re") && <InstanceHits key={`${text} ${currentQuery.value.has("case")}`} log={model.key} query={{ text, isPattern: false, ignoreCase: !currentQuery.value.has("case") }} />}
    </Page>
  );
}

const MOMENT_MS = 10_000;

/** It has not ended, or about when the log was opened. */
function mayGrow(attempt: Attempt, openedAt: number): boolean {
  return !isEnded(attempt) || (attempt.finished_at !== null && milliseconds(attempt.finished_at) > openedAt - MOMENT_MS);
}

function isEnded(attempt: Attempt): boolean {
  return FINAL.includes(attempt.status);
}

function Tries({ attempts, number, hrefOf }: { attempts: readonly Attempt[]; number: number; hrefOf: (attempt: number) => string }): JSX.Element | null {
  if (attempts.length < 2) return null;
  return <Select label="Attempt" hideLabel value={String(number)} options={attempts.map((each) => [String(each.attempt), `attempt ${each.attempt} of ${attempts.length}, ${lookOf(each.status).word}`] as const)} onChange={(each) => go(hrefOf(Number(each)))} />;
}

async function download(model: LogModel): Promise<void> {
  try {
    const link = await source.act("POST /runs/{run}/tasks/{name}/{index}/attempts/{number}/log/link", model.key);
    const anchor = document.createElement("a");
    anchor.href = link.path;
    anchor.download = "";
    anchor.click();
  } catch (error) {
    notifyProblem(asProblem(error));
  }
}

/** Copies the chosen lines, or the whole log if it is not too large. */
function CopyLines({ model }: { model: LogModel }): JSX.Element {
  const chosen = linesOfHash(currentHash.value);
  const total = model.lines.value ?? 0;
  const size = model.size.value ?? 0;
  const reason = total === 0 ? "There is nothing to copy." : !chosen && size > MOST_COPIED ? "The log is too large to copy. Choose lines by their numbers, or download it." : null;
  const run = async (): Promise<void> => {
    const [first, last] = chosen ? [Math.min(chosen.first, total), Math.min(chosen.last, total)] : [1, total];
    try {
      const found = await model.read(first - 1, last - 1, MOST_COPIED);
      if (await copy(plain(new TextDecoder().decode(found)))) notify("good", `${count(last - first + 1, "line")} copied${found.length >= MOST_COPIED ? `, cut after ${bytes(MOST_COPIED)}` : ""}.`);
    } catch (error) {
      notifyProblem(asProblem(error));
    }
  };
  return <button type="button" class="button" aria-disabled={reason === null ? undefined : true} title={reason ?? undefined} onClick={() => { if (reason === null) void run(); }}><Icon name="copy" />{chosen ? `Copy ${count(chosen.last - chosen.first + 1, "line")}` : "Copy"}</button>;
}
