import assert from "node:assert/strict";
import { test } from "node:test";
import { addDays, daysInMonth, isDay, localTime, startOf, startOfDay } from "../src/data/zones.ts";

const iso = (time: number): string => new Date(time).toISOString();

test("clock times of a zone, before and after a clock change", () => {
  assert.deepEqual(localTime(Date.parse("2026-03-29T00:30:00Z"), "Europe/Berlin"), { day: "2026-03-29", clock: "01:30" });
  assert.deepEqual(localTime(Date.parse("2026-03-29T01:30:00Z"), "Europe/Berlin"), { day: "2026-03-29", clock: "03:30" });
  assert.deepEqual(localTime(Date.parse("2026-01-01T23:30:00Z"), "Nowhere/Unknown"), { day: "2026-01-01", clock: "23:30" });
});

test("a day starts at midnight of its zone", () => {
  assert.equal(iso(startOfDay("2026-11-10", "Europe/Berlin")), "2026-11-09T23:00:00.000Z");
  assert.equal(iso(startOfDay("2026-07-10", "Europe/Berlin")), "2026-07-09T22:00:00.000Z");
  assert.equal(iso(startOfDay("2026-03-30", "Europe/Berlin")), "2026-03-29T22:00:00.000Z");
  assert.equal(iso(startOfDay("2026-11-10", "Pacific/Kiritimati")), "2026-11-09T10:00:00.000Z");
  assert.equal(iso(startOfDay("2026-11-10", "America/Los_Angeles")), "2026-11-10T08:00:00.000Z");
});

test("where midnight does not exist, the day starts after the change", () => {
  // Beirut goes from 00:00 to 01:00 on this day.
  const start = startOfDay("2026-03-29", "Asia/Beirut");
  assert.deepEqual(localTime(start, "Asia/Beirut"), { day: "2026-03-29", clock: "01:00" });
});

test("weeks, months, days", () => {
  assert.equal(startOf("week", "2026-11-18"), "2026-11-16");
  assert.equal(startOf("week", "2026-11-16"), "2026-11-16");
  assert.equal(startOf("week", "2026-11-15"), "2026-11-09");
  assert.equal(startOf("month", "2026-11-18"), "2026-11-01");
  assert.equal(addDays("2026-02-28", 1), "2026-03-01");
  assert.equal(daysInMonth("2028-02-01"), 29);
  assert.deepEqual([isDay("2026-02-30x"), isDay(null), isDay("2026-02-28")], [false, false, true]);
});
