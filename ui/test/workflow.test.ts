import assert from "node:assert/strict";
import { test } from "node:test";
import type { GridRun, WorkflowGrid } from "../src/api.d.ts";
import { dateLabels, spans, tasksShown } from "../src/workflow/grid-rows.ts";
import { NODE_HEIGHT, placed } from "../src/workflow/layout.ts";

test("runs of one version beside each other are one span", () => {
  assert.deepEqual(spans([{ version: "a" }, { version: "a" }, { version: "b" }, { version: "a" }]), [{ version: "a", from: 0, length: 2 }, { version: "b", from: 2, length: 1 }, { version: "a", from: 3, length: 1 }]);
});

test("of many tasks, those that failed come first", () => {
  const tasks = Array.from({ length: 150 }, (_, place) => `t${place}`);
  const run = { cells: tasks.map((_, place) => ({ status: place === 140 ? "failed" : "success", instances: 0, failed: 0 })) } as unknown as GridRun;
  const grid: WorkflowGrid = { tasks, runs: [run] };
  assert.deepEqual(tasksShown(grid, "", false).slice(0, 2), [140, 0]);
  assert.deepEqual(tasksShown(grid, "", true), [140]);
  assert.deepEqual(tasksShown(grid, "t14", false).slice(0, 2), [14, 140]);
});

test("boxes do not overlap, and each is right of what it comes after", () => {
  const { nodes, edges, width, height } = placed([{ name: "a", dependsOn: [] }, { name: "b", dependsOn: ["a"] }, { name: "c", dependsOn: ["a"] }, { name: "d", dependsOn: ["b", "c", "gone"] }]);
  const at = new Map(nodes.map((node) => [node.task.name, node]));
  assert.equal(edges.length, 4);
  for (const { from, to } of edges) assert.ok((at.get(from)?.x ?? 0) < (at.get(to)?.x ?? 0));
  assert.ok(Math.abs((at.get("b")?.y ?? 0) - (at.get("c")?.y ?? 0)) > NODE_HEIGHT);
  assert.ok(nodes.every((node) => node.x >= 0 && node.y >= 0 && node.x < width && node.y < height));
});

test("a date stands above the first run of a day, if there is room", () => {
  const runs = ["01", "02", "02", "03", "03", "03"].map((day) => ({ created_at: `2026-01-${day}T00:00:00Z` }));
  assert.deepEqual([...dateLabels(runs)], [0, 3]);
});
