import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunColumns } from "../src/api.d.ts";
import { decode, merge } from "../src/data/columns.ts";

const EMPTY = { task: [], index: [], status: [], attempt: [], queued: [], wait: [], ran: [] };
const DOCUMENT: RunColumns = {
  run: "7f3k", status: "running", start: 1000, mark: "m1",
  names: ["extract", "load"], statuses: ["pending", "running", "success"],
  tasks: { task: [0, 1, 1, 1], index: [null, null, 0, 1], status: [2, 1, 2, 0], attempt: [1, 0, 2, 0], queued: [5, null, -20, null], wait: [1, null, 2, null], ran: [7, null, 9, null] },
  earlier: { task: [1], index: [0], status: [2], attempt: [1], queued: [10], wait: [1], ran: [1] },
};

test("rows are read from the columns", () => {
  const { tasks, earlier } = decode(DOCUMENT);
  assert.deepEqual(tasks.at(2), { place: 2, name: "load", index: 0, status: "success", attempt: 2, queued: -20, wait: 2, ran: 9 });
  assert.deepEqual(tasks.at(3), { place: 3, name: "load", index: 1, status: "pending", attempt: 0, queued: null, wait: null, ran: null });
  assert.equal(earlier.length, 1);
});

test("a fan-out counts as its instances", () => {
  const { tasks } = decode(DOCUMENT);
  assert.deepEqual([...tasks.counts()], [["success", 2], ["running", 1], ["pending", 1]]);
  assert.deepEqual([...tasks.counts(true)], [["success", 2], ["pending", 1]]);
});

test("later columns replace rows and add new ones", () => {
  const next: RunColumns = { ...DOCUMENT, mark: "m2", earlier: EMPTY, tasks: { task: [1, 1], index: [1, 2], status: [2, 1], attempt: [1, 1], queued: [30, 31], wait: [1, null], ran: [4, null] } };
  const both = merge(DOCUMENT, next);
  assert.equal(both.mark, "m2");
  assert.equal(both.tasks.task.length, 5);
  const { tasks, earlier } = decode(both);
  assert.equal(tasks.at(3).status, "success");
  assert.deepEqual([tasks.at(4).index, tasks.at(4).status], [2, "running"]);
  assert.equal(earlier.length, 1);
});

test("columns of different lengths are refused", () => {
  assert.throws(() => decode({ ...DOCUMENT, tasks: { ...DOCUMENT.tasks, ran: [] } }), /differ in length/);
});
