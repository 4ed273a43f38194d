import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunEvent, RunSummary } from "../src/api.d.ts";
import { withCounts } from "../src/run/live.ts";

const run = { id: "7f3k", status: "running", round: 1, note: null, cancel_requested_at: null };
const summary = { run, counts: { running: 2, pending: 8 }, progress: { done: 0, total: 10 }, estimate: { seconds_left: 60, median: 70, runs: 3 }, failures: [] } as unknown as RunSummary;
const event = (counts: Record<string, number> | null, more = {}): RunEvent => ({ run: { ...run, ...more }, counts }) as unknown as RunEvent;

test("other counts show at once", () => {
  const next = withCounts(summary, event({ success: 3, skipped: 1, running: 2, pending: 4 }), 5);
  assert.deepEqual(next?.progress, { done: 4, total: 10 });
  assert.equal(next?.estimate?.seconds_left, 55);
  assert.equal(next?.counts.success, 3);
});

test("a failure, another state or a missing count is read again", () => {
  assert.equal(withCounts(summary, event({ failed: 1, running: 1, pending: 8 }), 0), null);
  assert.equal(withCounts(summary, event({ success: 10 }, { status: "success" }), 0), null);
  assert.equal(withCounts(summary, event({ running: 2, pending: 8 }, { note: "paused by me" }), 0), null);
  assert.equal(withCounts(summary, event(null), 0), null);
});
