import assert from "node:assert/strict";
import { test } from "node:test";
import { dollars } from "../src/words.ts";

test("sums of money keep two digits that say something", () => {
  assert.deepEqual([0, 5, 1.2, 0.04, 0.0013, 0.0000168].map(dollars), ["$0", "$5.00", "$1.20", "$0.04", "$0.0013", "$0.000017"]);
});
