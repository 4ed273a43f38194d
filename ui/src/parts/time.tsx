/** Times for people: relative, with UTC and local time in the tooltip. */

import type { JSX } from "preact";
import { now } from "../clock.ts";
import { ago, duration, milliseconds, secondsOf, utc, utcClock } from "../words.ts";

/** `5m ago`, which counts on. */
export function Ago({ at }: { at: string | number | null | undefined }): JSX.Element {
  if (at == null) return <span class="dim">–</span>;
  return <time dateTime={new Date(milliseconds(at)).toISOString()} title={both(at)}>{ago(at, now.value)}</time>;
}

/** `14:02:07`, with the date if it is not today. */
export function Clock({ at }: { at: string | number | null | undefined }): JSX.Element {
  if (at == null) return <span class="dim">–</span>;
  return <time class="number" dateTime={new Date(milliseconds(at)).toISOString()} title={both(at)}>{utcClock(at, now.value)}</time>;
}

/** `4m 12s` from start to end; counts on while there is no end. */
export function Took({ start, end }: { start: string | null | undefined; end: string | null | undefined }): JSX.Element {
  const seconds = secondsOf(start, end, start && !end ? now.value : 0);
  if (seconds === null) return <span class="dim">–</span>;
  return <span class="number" title={`${start ? utc(start) : ""}${end ? ` to ${utc(end)}` : ""}`}>{duration(seconds)}</span>;
}

function both(at: string | number): string {
  return `${utc(at)}\n${new Date(milliseconds(at)).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "long" })}`;
}
