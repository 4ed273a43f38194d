import assert from "node:assert/strict";
import { test } from "node:test";
import type { RunColumns, TaskColumns, TaskFailure } from "../src/api.d.ts";
import { groupTasks } from "../src/draw/groups.ts";
import { cellsFor, ordered } from "../src/draw/mosaic.ts";
import { timelineAxis, timelineRows } from "../src/draw/timeline.ts";
import { groupFailures, pattern } from "../src/run/failures.ts";
import { runTasks } from "../src/run/model.ts";

const STATUSES = ["pending", "running", "success", "failed"];

/** Rows of `[task, index, status, queued, wait, ran]`. */
function columns(...rows: [number, number | null, number, number | null, number | null, number | null][]): TaskColumns {
  return { task: rows.map((row) => row[0]), index: rows.map((row) => row[1]), status: rows.map((row) => row[2]), attempt: rows.map(() => 1), queued: rows.map((row) => row[3]), wait: rows.map((row) => row[4]), ran: rows.map((row) => row[5]) };
}

const document = (tasks: TaskColumns, mark = "1"): RunColumns => ({ run: "r", status: "running", start: 0, mark, names: ["extract", "load", "publish"], statuses: STATUSES, tasks, earlier: columns() });

const FIRST = document(columns([0, null, 2, 0, 5, 100], [1, null, 1, 100, 0, null], [1, 0, 2, 100, 5, 40], [1, 1, 3, 100, 5, 60], [2, null, 0, null, null, null]));

test("tasks are grouped with their instances by index, also those that came later", () => {
  const later = document(columns([1, 1, 2, 100, 5, 70], [1, 3, 1, 120, 5, null], [1, 2, 2, 110, 5, 30]), "2");
  const tasks = runTasks(later, runTasks(FIRST));
  assert.deepEqual(tasks.groups.map((group) => [group.name, group.instances.length]), [["extract", 0], ["load", 4], ["publish", 0]]);
  const load = tasks.groups[1]?.instances ?? new Uint32Array();
  assert.deepEqual(Array.from(load, (place) => tasks.tasks.index[place]), [0, 1, 2, 3]);
  assert.deepEqual(Array.from(load, (place) => tasks.tasks.statuses[tasks.tasks.status[place] ?? 0]), ["success", "success", "success", "running"]);
  assert.equal(tasks.mark, "2");
});

test("a document without changes keeps the tasks", () => {
  const before = runTasks(FIRST);
  assert.equal(runTasks(document(columns(), "9"), before).groups, before.groups);
});

test("a fan-out is one row until it is opened; a filter keeps its row if an instance fits", () => {
  const { tasks, groups } = runTasks(FIRST);
  assert.equal(timelineRows(groups, new Set(), null).length, 3);
  assert.equal(timelineRows(groups, new Set(["load"]), null).length, 5);
  const isFailed = (place: number): boolean => tasks.status[place] === 3;
  assert.deepEqual([...timelineRows(groups, new Set(), isFailed).place], [1]);
  assert.deepEqual([...timelineRows(groups, "all", isFailed).place], [1, 3]);
});

test("the axis goes on until now while something runs", () => {
  const { tasks } = runTasks(FIRST);
  assert.equal(timelineAxis(tasks, null).end, 165);
  assert.equal(timelineAxis(tasks, 5000).end, 5000);
});

test("cells are as large as they fit, and 100,000 still have two pixels", () => {
  assert.equal(cellsFor(24, 800, 220).step, 20);
  const many = cellsFor(100_000, 1000, 220);
  assert.deepEqual([many.step, many.perRow, many.rows], [2, 500, 200]);
  assert.equal(cellsFor(0, 0, 220).perRow, 1);
});

test("cells by duration: the longest first, those without one last", () => {
  const { tasks, groups } = runTasks(document(columns([1, 0, 2, 0, 0, 10], [1, 1, 1, 0, 0, null], [1, 2, 2, 5, 0, 30])));
  const places = groupTasks(tasks)[0]?.instances ?? new Uint32Array();
  assert.equal(groups.length, 1);
  assert.deepEqual([...ordered(tasks, places, "duration")], [2, 0, 1]);
  assert.deepEqual([...ordered(tasks, places, "start")], [0, 1, 2]);
  assert.deepEqual([...ordered(tasks, places, "index")], [0, 1, 2]);
});

const failure = (index: number, message: string | null, name = "load"): TaskFailure => ({ name, index, attempt: 1, failure: message === null ? null : { kind: "exception", message, detail: null }, exit_code: 137, finished_at: null });

test("failures that differ in numbers and ids are one group, which keeps what they have in common", () => {
  const [first, second] = groupFailures([
    failure(0, "KeyError: 'day'"),
    failure(3, "HTTPError: 503 for part 3, request 7f3k9a1c"),
    failure(4, "HTTPError: 503 for part 4, request 9a1c7f3k\nmore"),
  ]);
  assert.equal(first?.message, "HTTPError: 503 for part …, request …");
  assert.equal(first?.failures.length, 2);
  assert.equal(second?.message, "KeyError: 'day'");
});

test("failures without a message have their exit code; different tasks are different groups", () => {
  const groups = groupFailures([failure(0, null), failure(1, null), failure(0, null, "publish")]);
  assert.deepEqual(groups.map((group) => [group.message, group.failures.length]), [["exit code 137", 2], ["exit code 137", 1]]);
});

test("words are no ids", () => {
  assert.equal(pattern("ConnectionRefusedError deadbeef cafe1234 in 0.5 s, try 2"), "ConnectionRefusedError deadbeef # in # s, try #");
  assert.equal(pattern("id 123e4567-e89b-12d3-a456-426614174000 gone"), "id # gone");
});
