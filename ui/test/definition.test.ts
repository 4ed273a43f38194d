import assert from "node:assert/strict";
import { test } from "node:test";
import { changesBetween, changeText, layersOf, tasksOf } from "../src/definition.ts";

const DEFINITION = {
  name: "etl",
  params: [{ name: "day", type: "date" }],
  tasks: [
    { name: "extract", executor: "python", action: { python: { file: "tasks.py", function: "extract" } }, inputs: [["day", { ref: ["params", "day"] }]] },
    { name: "load", executor: "process", action: { command: [{ const: "sh" }, { ref: ["params", "day"] }] }, depends_on: ["extract"], foreach: { ref: ["tasks", "extract"] }, retries: 2 },
  ],
};

test("a task is shown with what it does", () => {
  const [extract, load] = tasksOf(DEFINITION);
  assert.equal(extract?.does, "tasks.py: extract");
  assert.deepEqual([load?.does, load?.isFanOut, load?.options], ["sh params.day", true, [["retries", "2"]]]);
  assert.deepEqual(tasksOf(null), []);
  assert.deepEqual(tasksOf({ tasks: "what" }), []);
});

test("layers follow the longest way; a cycle has none", () => {
  const layers = layersOf([
    { name: "c", dependsOn: ["a", "b"] },
    { name: "a", dependsOn: [] },
    { name: "b", dependsOn: ["a", "gone"] },
    { name: "x", dependsOn: ["y"] },
    { name: "y", dependsOn: ["x"] },
  ]);
  assert.deepEqual([...layers].sort(), [["a", 0], ["b", 1], ["c", 2]]);
});

test("changes are named by task and key", () => {
  const next = structuredClone(DEFINITION) as typeof DEFINITION & { tasks: Record<string, unknown>[] };
  next.tasks.reverse();
  (next.tasks[0] as Record<string, unknown>)["retries"] = 3;
  (next.tasks[1] as Record<string, unknown>)["inputs"] = [["day", { const: "today" }]];
  next.tasks.push({ name: "publish", executor: "process", action: { command: [{ const: "true" }] } } as never);
  next.params = [];
  const texts = changesBetween(DEFINITION, next).map(changeText);
  assert.deepEqual(texts, ['params [{"name":"day","type":"date"}] → []', "extract.inputs.day params.day → today", "load.retries 2 → 3", "publish added"]);
  assert.deepEqual(changesBetween(DEFINITION, structuredClone(DEFINITION)), []);
});

test("names of objects are only names", () => {
  assert.deepEqual(changesBetween({ tasks: [] }, JSON.parse('{"tasks": [], "__proto__": 1}')).map((each) => each.path), ["__proto__"]);
});
