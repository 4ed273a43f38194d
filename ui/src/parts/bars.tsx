/** Small pictures of numbers: progress, shares of states, durations of the last runs. */

import type { JSX } from "preact";
import { href, path } from "../router.ts";
import { count, duration, grouped, lookOf, utc } from "../words.ts";

/** `881 of 1,204` with a bar. */
export function ProgressBar({ done, total, failed = 0, noun = "task" }: { done: number; total: number; failed?: number; noun?: string }): JSX.Element {
  const share = total === 0 ? 0 : done / total;
  const bad = total === 0 ? 0 : failed / total;
  return (
    <span class="progress">
      <span class="progress-track" role="progressbar" aria-valuemin={0} aria-valuemax={total} aria-valuenow={done} aria-label={`${grouped(done)} of ${count(total, noun)}`}>
        <span class="progress-done" style={{ width: `${(share - bad) * 100}%` }} />
        {failed > 0 && <span class="progress-failed" style={{ width: `max(3px, ${bad * 100}%)` }} />}
      </span>
      <span class="progress-text number" aria-hidden="true">{grouped(done)}/{grouped(total)}</span>
    </span>
  );
}

const ORDER = ["success", "running", "dispatched", "pending", "paused", "skipped", "cancelled", "failed"];

/** The shares of states as one bar. The numbers have to stand beside it. */
export function StateBar({ counts }: { counts: Readonly<Partial<Record<string, number>>> }): JSX.Element {
  const shown = Object.entries(counts).filter(([, number]) => number).sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b));
  return (
    <span class="state-bar" aria-hidden="true">
      {shown.map(([state, number]) => <span key={state} class={`is-${lookOf(state).kind}`} style={{ flexGrow: number ?? 0 }} />)}
    </span>
  );
}

export interface BarRun {
  id: string;
  status: string;
  created_at: string;
  seconds: number | null;
}

/** The last runs, oldest first: height is the duration, colour the state. Each bar is a link to its run. */
export function RunBars({ runs, label, most = 20 }: { runs: readonly BarRun[]; label: string; most?: number }): JSX.Element {
  const shown = runs.slice(0, most).reverse();
  const longest = Math.max(1e-9, ...shown.map((run) => run.seconds ?? 0));
  return (
    <span class="run-bars" role="list" aria-label={label}>
      {shown.map((run) => {
        const look = lookOf(run.status);
        const text = `${look.word}, ${duration(run.seconds)}, ${utc(run.created_at)}`;
        return (
          <span role="listitem" key={run.id}>
            <a href={href(path("runs", run.id))} title={text} aria-label={text} class={`is-${look.kind}`}>
              <span style={{ height: `${20 + 80 * Math.sqrt((run.seconds ?? 0) / longest)}%` }} />
            </a>
          </span>
        );
      })}
    </span>
  );
}

/** A line of numbers without axes. */
export function Sparkline({ values, label, width = 96, height = 20 }: { values: readonly (number | null)[]; label: string; width?: number; height?: number }): JSX.Element {
  const known = values.filter((value): value is number => value !== null);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const x = (place: number): number => (values.length < 2 ? width / 2 : 2 + (place / (values.length - 1)) * (width - 4));
  const y = (value: number): number => (high === low ? height / 2 : height - 2 - ((value - low) / (high - low)) * (height - 4));
  const points = values.map((value, place) => (value === null ? null : `${x(place).toFixed(1)},${y(value).toFixed(1)}`)).filter(Boolean);
  const last = points.at(-1)?.split(",");
  return (
    <svg class="sparkline" width={width} height={height} viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label}>
      <polyline points={points.join(" ")} />
      {last && <circle cx={last[0]} cy={last[1]} r="2" />}
    </svg>
  );
}
