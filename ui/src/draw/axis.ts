/** A time axis on which long idle times are folded. Times are milliseconds from the run's start. */

import { duration } from "../words.ts";

export interface Gap {
  start: number;
  end: number;
}

export interface Tick {
  /** The position on the axis. */
  at: number;
  /** The time. */
  time: number;
}

const BINS = 2048;
const LEAST_GAP_MS = 10_000;
/** A gap is folded if it is at least this part of the whole. */
const LEAST_SHARE = 0.1;
/** A folded gap takes this part of the time in which something happened. */
const FOLDED_SHARE = 0.04;

/** Times in which nothing was dispatched or ran. `starts` and `ends` belong together; NaN is left out. */
export function idleGaps(starts: ArrayLike<number>, ends: ArrayLike<number>, first: number, last: number): Gap[] {
  const whole = last - first;
  if (!(whole > LEAST_GAP_MS)) return [];
  const changes = new Int32Array(BINS + 2);
  const latestEnd = new Float64Array(BINS + 1).fill(-Infinity);
  const earliestStart = new Float64Array(BINS + 1).fill(Infinity);
  const bin = (time: number): number => Math.min(BINS, Math.max(0, Math.floor(((time - first) / whole) * BINS)));
  for (let place = 0; place < starts.length; place += 1) {
    const [start, end] = [starts[place] ?? NaN, ends[place] ?? NaN];
    if (!(end >= start)) continue;
    const [a, b] = [bin(start), bin(end)];
    changes[a] = (changes[a] ?? 0) + 1;
    changes[b + 1] = (changes[b + 1] ?? 0) - 1;
    if (start < (earliestStart[a] ?? 0)) earliestStart[a] = start;
    if (end > (latestEnd[b] ?? 0)) latestEnd[b] = end;
  }
  return gapsBetween(changes, latestEnd, earliestStart, first, last).filter(
    (gap) => gap.end - gap.start >= Math.max(LEAST_GAP_MS, whole * LEAST_SHARE),
  );
}

export class Axis {
  /** The length with folded gaps. */
  readonly length: number;
  readonly #folded: number;

  constructor(
    readonly start: number,
    readonly end: number,
    readonly gaps: readonly Gap[] = [],
  ) {
    const idle = gaps.reduce((sum, gap) => sum + gap.end - gap.start, 0);
    const busy = Math.max(1, end - start - idle);
    this.#folded = busy * FOLDED_SHARE;
    this.length = busy + gaps.length * this.#folded;
  }

  /** The position of a time. */
  at(time: number): number {
    let saved = 0;
    for (const gap of this.gaps) {
      if (time <= gap.start) break;
      const width = gap.end - gap.start;
      if (time < gap.end) return gap.start - this.start - saved + ((time - gap.start) / width) * this.#folded;
      saved += width - this.#folded;
    }
    return time - this.start - saved;
  }

  /** The time at a position. */
  time(position: number): number {
    let saved = 0;
    for (const gap of this.gaps) {
      const from = gap.start - this.start - saved;
      if (position <= from) break;
      const width = gap.end - gap.start;
      if (position < from + this.#folded) return gap.start + ((position - from) / this.#folded) * width;
      saved += width - this.#folded;
    }
    return this.start + position + saved;
  }

  /** Round times between two positions, about `most` of them and none inside a folded gap. */
  ticks(from: number, to: number, most: number): Tick[] {
    const step = roundStep((to - from) / Math.max(1, most));
    const found: Tick[] = [];
    let next = Math.ceil(this.time(from) / step) * step;
    for (let guard = 0; guard < 400; guard += 1) {
      const gap = this.gaps.find((each) => next > each.start && next < each.end);
      if (gap) next = Math.ceil(gap.end / step) * step;
      const at = this.at(next);
      if (at > to) break;
      found.push({ at, time: next });
      next += step;
    }
    return found;
  }
}

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 900_000, 1_800_000, 3_600_000, 7_200_000, 14_400_000, 21_600_000, 43_200_000];
const DAY = 86_400_000;

/** The next round step that is not smaller: 1, 2, 5 … 30 s, 1 min … 12 h, whole days. */
export function roundStep(least: number): number {
  return STEPS.find((step) => step >= least) ?? Math.ceil(least / DAY) * DAY;
}

/** A duration in milliseconds: `17ms` below a second, then as elsewhere. */
export function fine(milliseconds: number | null): string {
  if (milliseconds === null || !(milliseconds < 1000)) return duration(milliseconds === null ? null : milliseconds / 1000);
  return `${Math.max(0, Math.round(milliseconds))}ms`;
}

/** `0`, `250ms`, `1.5s`, `2m`, `1h 30m`: as exact as the step between ticks needs it. */
export function tickLabel(time: number, step: number): string {
  if (time === 0) return "0";
  const sign = time < 0 ? "−" : "";
  const given = Math.abs(time);
  if (step < 1000 && given < 1000) return `${sign}${Math.round(given)}ms`;
  if (given < 60_000) return `${sign}${Number((given / 1000).toFixed(step < 1000 ? 2 : 0))}s`;
  const parts: [number, string][] = [[DAY, "d"], [3_600_000, "h"], [60_000, "m"], [1000, "s"]];
  const words: string[] = [];
  let rest = given;
  for (const [size, unit] of parts) {
    const number = size === 1000 ? Number((rest / 1000).toFixed(step < 1000 ? 2 : 0)) : Math.floor(rest / size);
    rest -= number * size;
    if (number) words.push(`${number}${unit}`);
  }
  return sign + words.join(" ");
}

function gapsBetween(changes: Int32Array, latestEnd: Float64Array, earliestStart: Float64Array, first: number, last: number): Gap[] {
  const gaps: Gap[] = [];
  let active = 0;
  let idleSince = first;
  let isIdle = true;
  let latest = first;
  for (let bin = 0; bin <= BINS; bin += 1) {
    active += changes[bin] ?? 0;
    if (active > 0 && isIdle) {
      gaps.push({ start: idleSince, end: earliestStart[bin] ?? last });
      isIdle = false;
    }
    latest = Math.max(latest, latestEnd[bin] ?? first);
    if (active === 0 && !isIdle) {
      isIdle = true;
      idleSince = latest;
    }
  }
  if (isIdle) gaps.push({ start: idleSince, end: last });
  return gaps;
}
