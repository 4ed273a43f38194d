import assert from "node:assert/strict";
import { test } from "node:test";
import { inputsOfSpec, readable, yaml } from "../src/task/definition.ts";
import { exitWords } from "../src/task/failure.tsx";
import { framesIn, kindOfMessage } from "../src/task/model.ts";

test("messages of one cause are alike", () => {
  assert.equal(kindOfMessage("HTTPError: 503 from api, part 3"), kindOfMessage("HTTPError: 503 from api, part 417"));
  assert.equal(kindOfMessage("no key 'a' in 7f3k00aa11bb22"), kindOfMessage("no key 'bcd' in 7f3k00aa99bb22"));
  assert.ok(kindOfMessage("HTTPError: x") !== kindOfMessage("ValueError: x"));
});

test("frames are taken only in the shape that workers write", () => {
  const failure = { kind: "exception", message: "", detail: { frames: [{ file: "a.py", line: 1, function: "f", source: "x", caret: [0, 1] }, { file: 5 }, null] } } as const;
  assert.equal(framesIn(failure.detail.frames).length, 1);
  assert.deepEqual(framesIn("no"), []);
  assert.deepEqual(framesIn(undefined), []);
});

test("exit codes are told in words", () => {
  assert.equal(exitWords(137), "exit code 137, killed by SIGKILL: out of memory?");
  assert.equal(exitWords(-15), "exit code -15, killed by SIGTERM");
  assert.equal(exitWords(3), "exit code 3");
});

const DEFINITION = { tasks: [{ name: "load", inputs: [["day", { ref: ["params", "day"] }], ["rows", { ref: ["tasks", "extract", "output", "rows"] }], ["n", { const: 3 }], ["odd", { ref: ["params", "__proto__"] }]] }] };

test("inputs are values, or tasks that they come from", () => {
  assert.deepEqual(inputsOfSpec(DEFINITION, "load", { day: "2026-11-17" }), [
    { name: "day", value: "2026-11-17" },
    { name: "rows", from: { task: "extract", path: "extract.output.rows" } },
    { name: "n", value: 3 },
    { name: "odd", value: undefined },
  ]);
  assert.deepEqual(inputsOfSpec(DEFINITION, "other", {}), []);
});

test("a definition is shown as a workflow file would say it", () => {
  const spec = readable({ action: { command: [{ const: "sh" }, { const: "-c" }, { const: "echo: 1" }] }, inputs: [["a", { ref: ["params", "a"] }]], on: true });
  assert.equal(yaml(spec), 'action: {command: [sh, "-c", "echo: 1"]}\ninputs: {a: {ref: params.a}}\n"on": true');
  assert.equal(yaml({ long: "x".repeat(80), list: ["y".repeat(80), { a: 1 }] }), `long: ${"x".repeat(80)}\nlist:\n  - ${"y".repeat(80)}\n  - {a: 1}`);
});
