import assert from "node:assert/strict";
import { test } from "node:test";
import { Axis, fine, idleGaps, roundStep, tickLabel } from "../src/draw/axis.ts";

const HOUR = 3_600_000;

test("a long time in which nothing happens is a gap, with exact ends", () => {
  const gaps = idleGaps([0, 4000, 2 * HOUR], [5000, 61_000, 2 * HOUR + 30_000], 0, 2 * HOUR + 30_000);
  assert.deepEqual(gaps, [{ start: 61_000, end: 2 * HOUR }]);
});

test("short gaps, and gaps under something that runs, are none", () => {
  assert.deepEqual(idleGaps([0, 9000], [1000, 10_000], 0, 10_000), []);
  assert.deepEqual(idleGaps([0, 0, 90_000], [100_000, 1000, 95_000], 0, 100_000), []);
});

test("rows without times are left out", () => {
  assert.deepEqual(idleGaps([NaN, 0, 50_000], [NaN, 10_000, 60_000], 0, 60_000), [{ start: 10_000, end: 50_000 }]);
});

test("an axis leads from times to positions and back, also inside of gaps", () => {
  const axis = new Axis(0, 2 * HOUR + 60_000, [{ start: 60_000, end: 2 * HOUR }]);
  assert.ok(axis.length < 130_000, "the gap is folded");
  for (const time of [0, 30_000, 60_000, HOUR, 2 * HOUR, 2 * HOUR + 30_000, axis.end]) assert.ok(Math.abs(axis.time(axis.at(time)) - time) < 1e-3, String(time));
  assert.ok(Math.abs(axis.at(axis.end) - axis.length) < 1e-6);
});

test("ticks are round times, and none is inside a gap", () => {
  const axis = new Axis(0, 2 * HOUR + 60_000, [{ start: 60_000, end: 2 * HOUR }]);
  const times = axis.ticks(0, axis.length, 8).map((tick) => tick.time);
  assert.deepEqual(times, [0, 30_000, 60_000, 2 * HOUR, 2 * HOUR + 30_000, 2 * HOUR + 60_000]);
});

test("steps and labels", () => {
  assert.deepEqual([0.3, 3, 16_000, 61_000, 50_000_000].map(roundStep), [1, 5, 30_000, 120_000, 86_400_000]);
  assert.deepEqual([tickLabel(0, 10), tickLabel(250, 50), tickLabel(1500, 500), tickLabel(90_000, 30_000), tickLabel(2 * HOUR, HOUR), tickLabel(-1000, 1000)], ["0", "250ms", "1.5s", "1m 30s", "2h", "−1s"]);
  assert.deepEqual([fine(null), fine(17), fine(1500)], ["–", "17ms", "1.5s"]);
});
