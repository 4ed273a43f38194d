/** The same search in the logs of all instances of a fan-out: which of them printed this? */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { RunLogSearch } from "../api.d.ts";
import { asProblem, type Problem } from "../data/problem.ts";
import { source } from "../data/session.ts";
import { changedQuery, currentQuery, href, path } from "../router.ts";
import { count, grouped, taskName } from "../words.ts";
import type { LogKey, Query } from "./search.ts";

const SECONDS = 20;

export function InstanceHits({ log, query }: { log: LogKey; query: Query }): JSX.Element | null {
  const [found, setFound] = useState<RunLogSearch | null>(null);
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  const go = async (): Promise<void> => {
    setBusy(true);
    setProblem(null);
    try {
      const page = await source.get("/runs/{run}/logs/search", { run: log.run, q: query.text, ignore_case: query.ignoreCase, task: log.name, cursor: found?.cursor ?? null }, { seconds: SECONDS });
      setFound(found ? { ...page, logs: [...found.logs, ...page.logs], total: found.total + page.total, searched: found.searched + page.searched } : page);
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  const search = changedQuery(currentQuery.value, {});
  return (
    <div class="log-instances">
      {found && <span role="status">{count(found.total, "line")} in {count(found.searched, "log")} of {log.name}:</span>}
      {found?.logs.slice(0, 40).map((each) => (
        <a key={`${each.index} ${each.attempt}`} href={`${href(path("runs", log.run, "tasks", each.task, each.index ?? 0, each.attempt, "log"))}${search}${each.hits[0] ? `#L${each.hits[0].line}` : ""}`} title={each.hits[0]?.text.slice(0, 300)}>
          {taskName(each.task, each.index)} <b class="number">{grouped(each.total)}</b>
        </a>
      ))}
      {found && found.logs.length > 40 && <span class="dim">and {count(found.logs.length - 40, "other log")}</span>}
      {(!found || found.cursor !== null) && <button type="button" class="button small" disabled={isBusy} onClick={() => void go()}>{isBusy ? "Searching …" : found ? "Search on" : `Search all instances of ${log.name}`}</button>}
      {problem && <span class="field-error">{problem.detail}</span>}
    </div>
  );
}
