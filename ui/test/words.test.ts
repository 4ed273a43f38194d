import assert from "node:assert/strict";
import { test } from "node:test";
import * as words from "../src/words.ts";

// The same pairs are checked against ork.status.formatting in tests/architecture/test_ui_words.py.
import cases from "./words.json";

test("durations, estimates and counts are those of the command line", () => {
  for (const [seconds, text] of cases.duration) assert.equal(words.duration(seconds as number), text);
  for (const [seconds, text] of cases.rough) assert.equal(words.rough(seconds as number), text);
  for (const [time, now, text] of cases.ago) assert.equal(words.ago(time as string, Date.parse(now as string)), text);
  for (const [number, noun, text] of cases.count) assert.equal(words.count(number as number, noun as string), text);
});

test("what is unknown is a dash", () => {
  assert.equal(words.duration(null), "–");
  assert.equal(words.ago(null, 0), "–");
  assert.equal(words.between("2026-01-01T00:00:00Z", null), "–");
});

test("a state that is unknown keeps its word", () => {
  assert.deepEqual(words.lookOf("timed_out"), { kind: "failed", word: "timed out" });
  assert.deepEqual(words.lookOf("not_yet_known"), { kind: "pending", word: "not yet known" });
  assert.equal(words.lookOf("__proto__").kind, "pending");
});

test("arguments are quoted for a shell if they need it", () => {
  assert.equal(words.argument("load"), "load");
  assert.equal(words.argument("load[3]"), "'load[3]'");
  assert.equal(words.argument("it's"), `'it'\\''s'`);
});

test("sizes have one unit", () => {
  assert.equal(words.bytes(999), "999 B");
  assert.equal(words.bytes(1500), "1.5 KB");
  assert.equal(words.bytes(999_960), "1.0 MB");
  assert.equal(words.bytes(200_000_000), "200.0 MB");
});

test("times show their date if it is not today", () => {
  const now = Date.parse("2026-07-05T14:02:07Z");
  assert.equal(words.utcClock("2026-07-05T01:02:03+00:00", now), "01:02:03");
  assert.equal(words.utcClock("2026-07-04T23:59:59Z", now), "2026-07-04 23:59:59");
});
