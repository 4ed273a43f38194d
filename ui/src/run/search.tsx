/** Which of the instances printed this? */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { LogWithHits, RunLogSearch } from "../api.d.ts";
import { asProblem, isAbort, type Problem } from "../data/problem.ts";
import { source } from "../data/session.ts";
import { Empty } from "../parts/empty.tsx";
import { Checkbox, useDraft } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { ProblemView } from "../parts/problem.tsx";
import { Waiting } from "../parts/page.tsx";
import { currentQuery, href, path, setQuery } from "../router.ts";
import { bytes, count, grouped, taskName } from "../words.ts";
import { selection, select } from "./model.ts";

interface Found {
  logs: LogWithHits[];
  searched: number;
  total: number;
  cursor: string | null;
}

/** A search goes on by itself until it has this many logs with hits; then a button continues it. */
const ENOUGH = 200;

export function LogSearch({ run }: { run: string }): JSX.Element {
  const query = currentQuery.value;
  const q = query.get("q") ?? "";
  const ignoreCase = query.get("case") === "ignore";
  const task = query.get("in");
  const [text, setText] = useDraft(q);
  const search = useSearch(run, q, ignoreCase, task);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => { if (q === "") field.current?.focus(); }, []);
  return (
    <div class="run-search">
      <form class="page-bar" role="search" onSubmit={(event) => { event.preventDefault(); setQuery({ q: text }); if (text === q) search.again(); }}>
        <input ref={field} class="search" type="search" data-filter value={text} placeholder="Text in the logs of all tasks" aria-label="Text to search for" autocomplete="off" spellcheck={false} onInput={(event) => setText(event.currentTarget.value)} onKeyDown={(event) => { if (event.key === "Escape") event.currentTarget.blur(); }} />
        <button type="submit" class="button primary"><Icon name="search" />Search</button>
        <Checkbox label="Ignore case" checked={ignoreCase} onChange={(isOn) => setQuery({ case: isOn ? "ignore" : null })} />
        {task !== null && <button type="button" class="button small" onClick={() => setQuery({ in: null })}>only {task} <Icon name="close" /></button>}
      </form>
      {q === "" ? <Empty title="Search the logs of all tasks and instances">The text is searched as it stands, in every attempt.</Empty> : <Results run={run} q={q} search={search} ignoreCase={ignoreCase} />}
    </div>
  );
}

interface Search {
  found: Found | null;
  problem: Problem | null;
  isBusy: boolean;
  again: () => void;
  goOn: () => void;
}

function useSearch(run: string, q: string, ignoreCase: boolean, task: string | null): Search {
  const [state, setState] = useState<{ found: Found | null; problem: Problem | null; isBusy: boolean }>({ found: null, problem: null, isBusy: false });
  const [turn, setTurn] = useState({ number: 0, from: null as Found | null });
  useEffect(() => {
    if (q === "") return undefined;
    const stop = new AbortController();
    void work(turn.from, stop.signal);
    return () => stop.abort();
  }, [run, q, ignoreCase, task, turn]);
  const work = async (from: Found | null, signal: AbortSignal): Promise<void> => {
    let found = from;
    const until = (from?.logs.length ?? 0) + ENOUGH;
    setState({ found, problem: null, isBusy: true });
    try {
      do {
        const next: RunLogSearch = await source.get("/runs/{run}/logs/search", { run, q, ignore_case: ignoreCase || undefined, task, cursor: found?.cursor }, { signal, seconds: 20 });
        found = joined(found, next);
        setState({ found, problem: null, isBusy: next.cursor !== null });
      } while (found.cursor !== null && found.logs.length < until);
      setState({ found, problem: null, isBusy: false });
    } catch (error) {
      if (!signal.aborted && !isAbort(error)) setState({ found, problem: asProblem(error), isBusy: false });
    }
  };
  return { ...state, again: () => setTurn({ number: turn.number + 1, from: null }), goOn: () => setTurn({ number: turn.number + 1, from: state.found }) };
}

function joined(found: Found | null, next: RunLogSearch): Found {
  return { logs: [...(found?.logs ?? []), ...next.logs], searched: (found?.searched ?? 0) + next.searched, total: (found?.total ?? 0) + next.total, cursor: next.cursor };
}

function Results({ run, q, search, ignoreCase }: { run: string; q: string; search: Search; ignoreCase: boolean }): JSX.Element {
  const { found, problem, isBusy } = search;
  const selected = selection();
  if (problem && !found) return <ProblemView problem={problem} again={search.again} />;
  if (!found) return <Waiting what="the search" />;
  const logs = [...found.logs].sort((a, b) => b.total - a.total);
  return (
    <>
      <p class="search-sum" role="status">
        <b>{count(found.total, "line")}</b> in {count(logs.length, "log")} · searched {count(found.searched, "log")}
        {isBusy ? " …" : found.cursor === null ? "" : ", there are more"}
        {!isBusy && found.cursor !== null && <button type="button" class="button small" onClick={search.goOn}>Search on</button>}
      </p>
      {problem && <ProblemView problem={problem} again={search.goOn} />}
      {logs.length === 0 && !isBusy && <Empty title={`No log has “${q.slice(0, 80)}”`} />}
      <div class="hits">
        {logs.map((log) => (
          <section class="hit" key={`${log.task} ${log.index} ${log.attempt}`} aria-current={selected?.task === log.task && selected.index === log.index ? "true" : undefined}>
            <header>
              <button type="button" class="link-button" onClick={() => select({ task: log.task, index: log.index })}>{taskName(log.task, log.index)}</button>
              <span class="dim">{log.attempt > 1 && `attempt ${log.attempt} · `}{count(log.total, "line")}{!log.is_complete && `, until ${bytes(log.searched)}`}</span>
              <a class="hit-all" href={logAddress(run, log, null, q)}>Open log</a>
            </header>
            <ol>
              {log.hits.map((hit) => (
                <li key={hit.line}>
                  <a href={logAddress(run, log, hit.line, q)}><span class="hit-line number">{grouped(hit.line)}</span><code>{marked(hit.text, q, ignoreCase)}</code></a>
                </li>
              ))}
            </ol>
            {log.total > log.hits.length && <a class="hit-more dim" href={logAddress(run, log, null, q)}>{grouped(log.total - log.hits.length)} more in this log</a>}
          </section>
        ))}
      </div>
    </>
  );
}

/** The page of an attempt at a line of its log. */
function logAddress(run: string, log: LogWithHits, line: number | null, q: string): string {
  return `${href(path("runs", run, "tasks", log.task, log.index ?? 0, log.attempt))}?q=${encodeURIComponent(q)}${line === null ? "" : `#L${line}`}`;
}

/** The text without terminal codes, with what was searched for marked. Long lines are shown around the hit. */
function marked(given: string, q: string, ignoreCase: boolean): JSX.Element {
  const text = given.replace(/\u001b\[[0-9;?]*[ -/]*[@-~]/g, "").replace(/[\u0000-\u0008\u000b-\u001f\u007f]/g, "·");
  const at = ignoreCase ? text.toLowerCase().indexOf(q.toLowerCase()) : text.indexOf(q);
  if (at < 0) return <>{text.slice(0, 400)}</>;
  const from = at > 160 ? at - 80 : 0;
  return <>{from > 0 && "…"}{text.slice(from, at)}<mark>{text.slice(at, at + q.length)}</mark>{text.slice(at + q.length, from + 400)}</>;
}
