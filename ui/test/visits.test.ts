import assert from "node:assert/strict";
import { test } from "node:test";
import { DAY, HOUR } from "../src/health.ts";
import { continued, newSince } from "../src/home/visits.ts";

test("a look at a run and back does not hide what is new; a pause of an hour does", () => {
  const first = continued({ seen: null, last: null }, 100 * DAY);
  assert.equal(newSince(first, 100 * DAY), 99 * DAY);
  const soon = continued({ seen: 98 * DAY, last: 100 * DAY }, 100 * DAY + HOUR / 2);
  assert.equal(newSince(soon, 100 * DAY + HOUR / 2), 98 * DAY);
  const later = continued(soon, 100 * DAY + 5 * HOUR);
  assert.equal(newSince(later, 100 * DAY + 5 * HOUR), 100 * DAY + HOUR / 2);
});

test("nobody is shown more than 30 days", () => {
  assert.equal(newSince({ seen: DAY, last: DAY }, 100 * DAY), 70 * DAY);
});
