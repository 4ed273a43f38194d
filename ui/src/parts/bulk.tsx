/** One command for many runs, and what came of it for each of them. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import type { BulkBody, BulkResult } from "../api.d.ts";
import { source } from "../data/session.ts";
import { href, path } from "../router.ts";
import { count, shortId } from "../words.ts";
import { Action, type ActionProps } from "./action.tsx";
import { Dialog } from "./dialog.tsx";
import { notify } from "./notice.tsx";
import { State } from "./state.tsx";

export type BulkKind = BulkBody["kind"];

/** The most runs of one request. */
export const MOST_AT_ONCE = 500;

const DOING: Record<BulkKind, string> = { retry: "Retrying", cancel: "Cancelling", pause: "Pausing", resume: "Resuming" };

interface BulkActionProps extends Pick<ActionProps, "label" | "icon" | "small" | "ask" | "reason"> {
  kind: BulkKind;
  runs: readonly string[];
  look?: ActionProps["kind"];
  onDone?: (results: readonly BulkResult[]) => void;
}

/** Results of which some are refusals. They outlast the button, which may go with its row. */
const refused = signal<{ kind: BulkKind; results: readonly BulkResult[] } | null>(null);

/** A button for several runs. A page that has it also has `<BulkRefusals />`. */
export function BulkAction({ kind, runs, look, onDone, reason, ...given }: BulkActionProps): JSX.Element {
  const work = async (): Promise<void> => {
    const { results } = await source.act("POST /run-commands", {}, { kind, runs: [...runs] }, { seconds: 60 });
    const bad = results.filter((each) => each.error !== null);
    if (bad.length === 0) notify("good", `${DOING[kind]} ${results.length === 1 ? shortId(results[0]?.run ?? "") : count(results.length, "run")}`);
    refused.value = bad.length > 0 ? { kind, results } : null;
    onDone?.(results);
  };
  const tooMany = runs.length > MOST_AT_ONCE ? `At most ${MOST_AT_ONCE} runs at once.` : null;
  return <Action {...given} kind={look} role="operator" command={commandFor(kind, runs)} reason={reason ?? tooMany} run={work} done={null} />;
}

/** The answer for each run, if some were refused. */
export function BulkRefusals(): JSX.Element | null {
  useEffect(() => () => { refused.value = null; }, []);
  return refused.value && <BulkResults {...refused.value} onClose={() => { refused.value = null; }} />;
}

/** `ork retry 7f3k`; for several runs a loop of the shell. */
export function commandFor(kind: BulkKind, runs: readonly string[]): string {
  const ids = runs.slice(0, MOST_AT_ONCE).map(shortId);
  if (ids.length === 1) return `ork ${kind} ${ids[0]}`;
  return `for run in ${ids.join(" ")}; do ork ${kind} $run${kind === "retry" ? " --detach" : ""}; done`;
}

function BulkResults({ kind, results, onClose }: { kind: BulkKind; results: readonly BulkResult[]; onClose: () => void }): JSX.Element {
  const bad = results.filter((each) => each.error !== null);
  return (
    <Dialog title={`${DOING[kind]}: ${bad.length} of ${count(results.length, "run")} refused`} onClose={onClose} wide footer={<><span class="push" /><button type="button" class="button" onClick={onClose}>Close</button></>}>
      <ul class="list bulk-results">
        {[...bad, ...results.filter((each) => each.error === null)].map((each) => (
          <li key={each.run}>
            <State of={each.error ? "failed" : "success"} quiet />
            <a href={href(path("runs", each.run))}><code>{shortId(each.run)}</code></a>
            <span class="bulk-text">{each.error ? each.error.detail || each.error.title : "accepted"}{each.error?.hint && <span class="dim"> {each.error.hint}</span>}</span>
          </li>
        ))}
      </ul>
    </Dialog>
  );
}
