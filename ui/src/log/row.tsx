/** A line of a log: number, time if wanted, and text with colours and hits. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { bytes, count, duration } from "../words.ts";
import { afterReturns, marked, spans, text } from "./ansi.ts";
import { levelOf, timeOf } from "./kinds.ts";
import { KEPT, type Line } from "./lines.ts";

export interface RowLook {
  isSelected: boolean;
  isCurrent: boolean;
  /** Milliseconds of the attempt's start if times are shown. */
  start: number | null;
}

interface RowProps {
  place: number;
  line: Line | undefined;
  look: RowLook;
  /** Where the search has found something in the text. */
  hits: (text: string) => readonly (readonly [number, number])[];
  /** Null while the numbers of lines are not known. */
  number: number | null;
  onNumber: (event: MouseEvent) => void;
  /** Shows the whole line. */
  onWhole: (line: Line) => void;
}

export function Row({ place, line, look, hits, number, onNumber, onWhole }: RowProps): JSX.Element {
  const shown = useMemo(() => line && afterReturns(line.text), [line?.text]);
  const given = useMemo(() => spans(shown?.text ?? ""), [shown?.text]);
  const level = useMemo(() => levelOf(shown?.text ?? ""), [shown?.text]);
  const parts = marked(given, hits(text(given)));
  const missing = line && line.length > KEPT ? line.length - KEPT : 0;
  const time = look.start === null || !shown ? null : timeOf(shown.text);
  return (
    <div class={`log-row${level ? ` is-${level}` : ""}${look.isSelected ? " is-selected" : ""}${look.isCurrent ? " is-current" : ""}`} data-place={place}>
      <a class="log-number" href={number === null ? undefined : `#L${number}`} tabIndex={-1} aria-label={number === null ? undefined : `Line ${number}`} onClick={onNumber}>{number ?? ""}</a>
      {look.start !== null && <span class="log-time">{time === null ? "" : `+${duration((time - look.start) / 1000)}`}</span>}
      <span class="log-text" dir="ltr">
        {parts.map((part, key) => (part.look ? <span key={key} class={part.look}>{part.text}</span> : part.text))}
        {line && shown && shown.overwritten > 0 && <Note text={count(shown.overwritten, "part") + " overwritten"} onClick={() => onWhole(line)} />}
        {line && missing > 0 && <Note text={`… ${bytes(missing)} more`} isCut onClick={() => onWhole(line)} />}
        {line === undefined && <span class="log-missing" aria-hidden="true" />}
      </span>
    </div>
  );
}

function Note({ text: words, isCut = false, onClick }: { text: string; isCut?: boolean; onClick: () => void }): JSX.Element {
  return <button type="button" class={`log-note${isCut ? " is-cut" : ""}`} title="Show the whole line" onClick={onClick}>{words}</button>;
}

export function FoldRow({ place, frames, hasTimes, onOpen }: { place: number; frames: number; hasTimes: boolean; onOpen: () => void }): JSX.Element {
  return (
    <div class="log-row is-fold" data-place={place}>
      <span class="log-number" />
      {hasTimes && <span class="log-time" />}
      <button type="button" class="log-note" aria-expanded="false" onClick={onOpen}>▸ {count(frames, "frame")} of libraries folded</button>
    </div>
  );
}
