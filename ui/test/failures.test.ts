import assert from "node:assert/strict";
import { test } from "node:test";
import type { Run } from "../src/api.d.ts";
import { common, groupFailures, splitError } from "../src/failures.ts";

const failed = (id: string, workflow: string, error: string | null, finished_at: string): Run => ({ id, workflow, error, finished_at, created_at: finished_at }) as Run;

test("an error is split into the task and what happened", () => {
  assert.deepEqual(splitError("task `load` failed: instance 4 failed: HTTPError: 503, part 4"), { task: "load", message: "HTTPError: 503, part 4" });
  assert.deepEqual(splitError("task load failed"), { task: "load", message: "failed" });
  assert.deepEqual(splitError("cancelled: over budget"), { task: null, message: "cancelled: over budget" });
  assert.deepEqual(splitError(null), { task: null, message: "failed" });
});

test("numbers and ids do not make another message", () => {
  assert.equal(common("HTTPError: 503 after 30.0s, part 4"), common("HTTPError: 502 after 12s, part 417"));
  assert.equal(common("no run 7bk40cpza0rp at 0xdeadbeef"), common("no run n2eez6ydz20a at 0x12"));
  assert.ok(common("KeyError: 'rows'") !== common("KeyError: 'parts'"));
});

test("runs with one message are one group, newest first", () => {
  const groups = groupFailures([
    failed("a", "etl", "task `load` failed: HTTPError: 503, part 1", "2026-01-01T00:00:00Z"),
    failed("b", "etl", "task `load` failed: HTTPError: 503, part 2", "2026-01-03T00:00:00Z"),
    failed("c", "other", "task `load` failed: HTTPError: 503, part 2", "2026-01-02T00:00:00Z"),
    failed("d", "etl", "task `publish` failed: exit code 3", "2026-01-04T00:00:00Z"),
  ]);
  assert.deepEqual(groups.map((group) => group.runs.map((run) => run.id)), [["d"], ["b", "c", "a"]]);
  assert.deepEqual(groups[1]?.workflows, ["etl", "other"]);
  assert.equal(groups[1]?.message, "HTTPError: 503, part 2");
});
