import assert from "node:assert/strict";
import { test } from "node:test";
import type { ListedRun, RunEvent, RunPage } from "../src/api.d.ts";
import { withChanged, withFirst, withNext } from "../src/data/run-list.ts";

const run = (number: number, status = "success"): ListedRun => ({ id: `r${number}`, created_at: `2026-01-01T00:00:${String(number).padStart(2, "0")}Z`, status, progress: null }) as ListedRun;
const page = (numbers: number[], cursor: string | null): RunPage => ({ runs: numbers.map((each) => run(each)), cursor, count: 9, count_is_exact: true, partial: false });
const ids = (list: { rows: readonly ListedRun[] }): string => list.rows.map((each) => each.id).join(" ");
const EMPTY = { rows: [], cursor: null, isLong: false, count: null, isExact: false, partial: false };

test("a first page that is read again replaces the list until more was read", () => {
  const list = withFirst(withFirst(EMPTY, page([5, 4, 3], "c3")), page([6, 5, 4], "c4"));
  assert.equal(ids(list), "r6 r5 r4");
  assert.equal(list.cursor, "c4");
});

test("rows that newer ones push from the first page stay, without gaps and doubles", () => {
  const long = withNext(withFirst(EMPTY, page([5, 4, 3], "c3")), page([3, 2, 1], "c1"));
  const list = withFirst(long, page([7, 6, 5], "c5"));
  assert.equal(ids(list), "r7 r6 r5 r4 r3 r2 r1");
  assert.equal(list.cursor, "c1");
});

test("a run that changed is shown so, and leaves the list if its state is not asked for", () => {
  const list = withNext(withFirst(EMPTY, page([3], "c3")), page([2, 1], null));
  const event = { run: run(2, "failed"), counts: { success: 3, failed: 1, running: 2 } } as unknown as RunEvent;
  const changed = withChanged(list, event, []);
  assert.deepEqual(changed?.rows[1]?.progress, { done: 4, total: 6 });
  assert.equal(ids(withChanged(list, event, ["success"]) ?? EMPTY), "r3 r1");
  assert.equal(withChanged(list, { run: run(9) } as RunEvent, []), null);
});
