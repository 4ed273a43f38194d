import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunDifference, TaskDifference } from "../src/api.d.ts";
import { changeOf, endedDifferently, sentences, slower } from "../src/compare/words.ts";

const task = (name: string, index: number | null, more: Partial<TaskDifference> = {}): TaskDifference => ({ name, index, seconds: { a: 1, b: 1 }, status: null, attempts: null, error: null, output: null, log: null, ...more });
const runs = (more: Partial<RunDifference> = {}): RunDifference => ({ a: "1", b: "2", workflow: null, version: null, status: null, trigger: null, scheduled_for: null, error: null, params: {}, seconds: { a: 10, b: 10 }, definition: null, code: null, tasks: [], partial: false, ...more });

test("equal runs are said to be equal", () => {
  assert.deepEqual(sentences(runs()).map((each) => each.kind), ["same"]);
});

test("differences are said in the order in which they matter", () => {
  const failed = { status: { a: "success", b: "failed" } };
  const found = sentences(
    runs({
      ...failed,
      error: { a: null, b: "task `load` failed" },
      params: { day: { a: "mon", b: "tue" }, limit: { a: null, b: 5 } },
      seconds: { a: 60, b: 120 },
      definition: { added: ["new"], removed: [], changed: { load: ["retries"] }, keys: [] },
      tasks: [task("load", null, failed), task("load", 3, failed), task("load", 4, failed), task("quick", null)],
    }),
  );
  assert.deepEqual(found.map((each) => each.text), [
    "The first run succeeded, the second failed: task `load` failed",
    "Param `day` is tue instead of mon.",
    "Param `limit` is 5 instead of not set.",
    "The definition was changed between them: changed `load` (retries); added `new`.",
    "2 tasks ended differently: `load[3]`, `load[4]`.",
    "The second took 2m instead of 1m: +1m, 2.0 times as long.",
  ]);
});

test("many tasks are counted, not listed", () => {
  const tasks = Array.from({ length: 40 }, (_, index) => task("load", index, { status: { a: "success", b: "failed" } }));
  assert.equal(sentences(runs({ tasks }))[0]?.text, "40 tasks ended differently: `load[0]`, `load[1]`, `load[2]`, `load[3]` and 36 others.");
  assert.equal(endedDifferently([task("load", null, { status: { a: null, b: "failed" } })]).length, 1);
});

test("only changes that are felt are durations, the largest first", () => {
  const seconds = (a: number | null, b: number | null): Partial<TaskDifference> => ({ seconds: { a, b } });
  const found = slower([task("a", null, seconds(0.1, 0.9)), task("b", null, seconds(10, 12)), task("c", null, seconds(100, 101)), task("d", null, seconds(30, 5)), task("e", null, seconds(null, 5))]);
  assert.deepEqual(found.map((each) => each.name), ["d", "b"]);
  assert.equal(changeOf({ a: 30, b: 5 }), "−25.0s, −83 %");
  assert.equal(changeOf({ a: null, b: 5 }), "–");
});
