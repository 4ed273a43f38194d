import assert from "node:assert/strict";
import { test } from "node:test";
import { type Findable, pick, splitTarget } from "../src/dialogs/matching.ts";

const item = (group: string, label: string, more: Partial<Findable> = {}): Findable => ({ group, label, ...more });
const ITEMS = [item("Pages", "Runs"), item("Pages", "Workflows"), item("Workflows", "my_etl"), item("Workflows", "etl"), item("Runs", "7f3k my_etl", { words: "failed" }), item("Error codes", "ORK201 unknown task", { isOnlyFound: true })];
const labels = (text: string): string => pick(ITEMS, text).map((each) => each.label).join(", ");

test("all words have to be there, and what begins with the text comes first", () => {
  assert.equal(labels("etl"), "etl, my_etl, 7f3k my_etl");
  assert.equal(labels("etl failed"), "7f3k my_etl");
  assert.equal(labels("7f3"), "7f3k my_etl");
  assert.equal(labels("ork2"), "ORK201 unknown task");
});

test("without a text, codes are not listed, and groups are short", () => {
  assert.equal(labels(""), "Runs, Workflows, my_etl, etl, 7f3k my_etl");
  assert.equal(pick(Array.from({ length: 99 }, (_, place) => item("Runs", `r${place}`)), "").length, 4);
});

test("a slash names whose tasks are asked for; without one it is the page", () => {
  assert.deepEqual(splitTarget("my_etl/lo", "", ["my_etl"]), { kind: "workflow", name: "my_etl" });
  assert.deepEqual(splitTarget("7f3k/lo", "", []), { kind: "run", name: "7f3k" });
  assert.equal(splitTarget("x/lo", "", []), null);
  assert.deepEqual(splitTarget("lo", "runs/7f3kabc/tasks/x/0/1", []), { kind: "run", name: "7f3kabc" });
  assert.deepEqual(splitTarget("lo", "workflows/my%20etl", []), { kind: "workflow", name: "my etl" });
  assert.equal(splitTarget("lo", "schedules", []), null);
});
