/** Above a log: search, what is shown, and where to go. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Checkbox } from "../parts/form.tsx";
import { Icon } from "../parts/icons.tsx";
import { currentQuery, setQuery } from "../router.ts";
import { grouped } from "../words.ts";
import { linesOfHash } from "./lines.ts";
import type { LogModel } from "./model.ts";
import type { Found, Query } from "./search.ts";

interface LogBarProps {
  model: LogModel;
  query: Query;
  found: Found;
  hit: number;
  onHit: (step: number) => void;
  errors: Found;
  onError: () => void;
  onEnd: () => void;
  canFollow: boolean;
  isFollowing: boolean;
  onFollow: (isOn: boolean) => void;
  onLine: (first: number, last: number) => void;
}

export function LogBar(props: LogBarProps): JSX.Element {
  const { query, found, hit, onHit } = props;
  const flag = (name: string, isOn: boolean): void => setQuery({ [name]: isOn ? 1 : null });
  const now = currentQuery.value;
  return (
    <div class="log-bar">
      <div class="log-search">
        <input
          class="search" type="search" data-filter value={query.text} placeholder="Search this log" aria-label="Search this log" autocomplete="off" spellcheck={false}
          onInput={(event) => setQuery({ q: event.currentTarget.value })}
          onKeyDown={(event) => {
            if (event.key === "Enter") onHit(event.shiftKey ? -1 : 1);
            else if (event.key === "Escape") event.currentTarget.blur();
          }}
        />
        <Toggle label="Match upper and lower case" text="Aa" isOn={!query.ignoreCase} onChange={(isOn) => flag("case", isOn)} />
        <Toggle label="Regular expression" text=".*" isOn={query.isPattern} onChange={(isOn) => flag("re", isOn)} />
        <button type="button" class="button plain small" aria-label="Previous hit" title="Previous hit (N)" disabled={found.hits.length === 0} onClick={() => onHit(-1)}><Icon name="up" /></button>
        <button type="button" class="button plain small" aria-label="Next hit" title="Next hit (n)" disabled={found.hits.length === 0} onClick={() => onHit(1)}><Icon name="down" /></button>
        <span class="log-hits dim number" role="status">{hitWords(query, found, hit)}</span>
      </div>
      <div class="log-options">
        <Checkbox label="Errors only" checked={now.has("errors")} onChange={(isOn) => flag("errors", isOn)} />
        <Checkbox label="Wrap" checked={now.has("wrap")} onChange={(isOn) => flag("wrap", isOn)} />
        <Checkbox label="Times" checked={now.has("times")} onChange={(isOn) => flag("times", isOn)} />
        <Checkbox label="Fold library frames" checked={!now.has("unfold")} onChange={(isOn) => flag("unfold", !isOn)} />
        {props.canFollow && <Checkbox label="Follow" checked={props.isFollowing} onChange={props.onFollow} />}
        <span class="push" />
        <GoToLine onLine={props.onLine} most={props.model.lines.value} />
        <button type="button" class="button small" title="Next error (e)" onClick={props.onError}>{props.errors.isRunning && props.errors.hits.length === 0 ? "Looking …" : props.errors.isComplete && props.errors.total > 0 ? `Next of ${grouped(props.errors.total)} errors` : "Next error"}</button>
        <button type="button" class="button small" title="To the end (G)" onClick={props.onEnd}>End</button>
      </div>
    </div>
  );
}

function Toggle({ label, text, isOn, onChange }: { label: string; text: string; isOn: boolean; onChange: (isOn: boolean) => void }): JSX.Element {
  return <button type="button" class="button plain small log-toggle" aria-pressed={isOn} aria-label={label} title={label} onClick={() => onChange(!isOn)}>{text}</button>;
}

function GoToLine({ onLine, most }: { onLine: (first: number, last: number) => void; most: number | null }): JSX.Element {
  const [text, setText] = useState("");
  return (
    <input
      class="go-to-line number" value={text} placeholder="Line" aria-label="Go to line, or lines: 212-219" inputMode="numeric" disabled={most === null}
      onInput={(event) => setText(event.currentTarget.value)}
      onKeyDown={(event) => {
        const lines = event.key === "Enter" ? linesOfHash(`L${text.replaceAll(/[,\sL]/g, "")}`) : null;
        if (lines) onLine(Math.min(lines.first, most ?? 1), Math.min(lines.last, most ?? 1));
      }}
    />
  );
}

function hitWords(query: Query, found: Found, hit: number): string {
  if (query.text === "") return "";
  if (found.problem) return found.problem.detail || found.problem.title;
  if (found.isRunning && found.hits.length === 0) return "searching …";
  if (found.total === 0) return found.isComplete ? "no hits" : "no hits yet: time ran out";
  const place = hit >= 0 ? `${grouped(hit + 1)} of ` : "";
  const more = found.isComplete ? "" : found.isRunning ? " so far" : " in the part that was searched";
  return `${place}${grouped(found.total)} ${found.total === 1 ? "line" : "lines"}${more}${found.total > found.hits.length && found.isComplete ? `, the first ${grouped(found.hits.length)} marked` : ""}`;
}
