import assert from "node:assert/strict";
import { test } from "node:test";
import { placedError, placedErrors } from "../src/data/places.ts";

test("an error of a definition has its file, line and code", () => {
  assert.deepEqual(placedError("d.yaml:4:37: ORK201 task `b` depends on `aa`, which is not a task"), {
    file: "d.yaml", line: 4, column: 37, code: "ORK201", message: "task `b` depends on `aa`, which is not a task",
  });
  assert.deepEqual(placedError("c.yaml:2:1: ORK101 `taks` is not a key (and 3 more)").message, "`taks` is not a key (and 3 more)");
});

test("other text is a message", () => {
  assert.deepEqual(placedError("the folder is missing: /srv/flows"), { file: null, line: null, column: null, code: null, message: "the folder is missing: /srv/flows" });
  assert.equal(placedErrors("Traceback (most recent call last):\n  File \"a.py\", line 3"), null);
  assert.equal(placedErrors("a.yaml:1:1: ORK101 x\nb.yaml:2:2: ORK201 y")?.length, 2);
});
