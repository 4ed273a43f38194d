import assert from "node:assert/strict";
import { test } from "node:test";
import type { CalendarTime, RunMark } from "../src/api.d.ts";
import { byDay, changeInWords, HOUR, isWell, slots, trend, worst } from "../src/health.ts";

const mark = (status: string, created_at: string, seconds: number | null = 1, scheduled_for: string | null = null): RunMark => ({ id: created_at, status, created_at, seconds, scheduled_for, trigger: "schedule" }) as RunMark;
const time = (state: string, at: string): CalendarTime => ({ time: at, state, run: null }) as CalendarTime;
const START = Date.parse("2026-01-01T00:00:00Z");

test("runs and times fall into their hour", () => {
  const found = slots(START, 3, HOUR, [mark("success", "2026-01-01T00:59:59Z"), mark("failed", "2026-01-01T01:00:00Z"), mark("failed", "2026-01-01T05:00:00Z")], [time("missed", "2026-01-01T02:00:00Z"), time("planned", "2026-01-01T02:30:00Z"), time("run", "2026-01-01T00:00:00Z")]);
  assert.deepEqual(found.map((slot) => [slot.runs.length, slot.missed, slot.planned]), [[1, 0, 0], [1, 0, 0], [0, 1, 1]]);
});

test("the worst state stands for several", () => {
  assert.equal(worst([{ status: "success" }, { status: "failed" }, { status: "running" }]), "failed");
  assert.equal(worst([{ status: "success" }, { status: "running" }]), "running");
  assert.equal(worst([]), null);
});

test("a workflow is well unless it failed lately or at last", () => {
  const old = mark("failed", "2025-12-01T00:00:00Z");
  assert.equal(isWell({ runs: [mark("success", "2026-01-01T00:00:00Z"), old] }, START), true);
  assert.equal(isWell({ runs: [old] }, START), false);
  assert.equal(isWell({ runs: [mark("running", "2026-01-01T02:00:00Z"), old] }, START), false);
  assert.equal(isWell({ runs: [mark("success", "2026-01-01T02:00:00Z"), mark("failed", "2026-01-01T01:00:00Z")] }, START), false);
  assert.equal(isWell({ runs: [] }, START), true);
});

test("a trend compares the newer half with the older", () => {
  const runs = (newer: number, older: number): RunMark[] => [...Array(5).fill(mark("success", "a", newer)), ...Array(5).fill(mark("success", "a", older))] as RunMark[];
  assert.ok(Math.abs((trend(runs(12, 10)) ?? 0) - 0.2) < 1e-9);
  assert.equal(trend(runs(1, 1).slice(0, 6)), null);
  assert.equal(trend(runs(1, 0)), null);
});

test("small changes are not worth a word", () => {
  assert.equal(changeInWords(0.04), null);
  assert.equal(changeInWords(null), null);
  assert.deepEqual(changeInWords(0.094), { text: "▲ 9 %", isSlower: true });
  assert.deepEqual(changeInWords(-0.5), { text: "▼ 50 %", isSlower: false });
});

test("days count runs on the day that they were scheduled for", () => {
  const days = byDay("2026-01-01", 3, "UTC", [mark("failed", "2026-01-02T09:00:00Z", 5, "2026-01-01T02:00:00Z"), mark("success", "2026-01-02T10:00:00Z", 7)], [time("missed", "2026-01-03T02:00:00Z")]);
  assert.deepEqual(days.map((day) => [day.day, day.runs, day.failed, day.missed, day.seconds]), [["2026-01-01", 1, 1, 0, 5], ["2026-01-02", 1, 0, 0, 7], ["2026-01-03", 0, 0, 1, 0]]);
});

test("days are those of the schedule's clocks", () => {
  const [first, second] = byDay("2026-01-01", 2, "Asia/Tokyo", [mark("success", "2026-01-01T16:00:00Z")], []);
  assert.deepEqual([first?.runs, second?.runs], [0, 1]);
});
