import assert from "node:assert/strict";
import { test } from "node:test";
import { MAX_HEIGHT, Picked, scrollTo, visibleRows } from "../src/parts/rows.ts";

test("only the rows that are seen are drawn", () => {
  const top = visibleRows(100_000, 30, 0, 600, 0);
  assert.deepEqual([top.first, top.last, top.offset, top.height], [0, 20, 0, 3_000_000]);
  const middle = visibleRows(100_000, 30, 1515, 600, 0);
  assert.deepEqual([middle.first, middle.last, middle.offset], [50, 71, 1500]);
});

test("the last row of a list that is too high for a browser can be reached", () => {
  const length = 1_000_000;
  const end = visibleRows(length, 30, MAX_HEIGHT - 600, 600, 0);
  assert.equal(end.height, MAX_HEIGHT);
  assert.equal(end.last, length);
  assert.equal(end.offset + (end.last - end.first) * 30, MAX_HEIGHT);
});

test("a row is scrolled into view only if it is not seen", () => {
  assert.equal(scrollTo(5, 1000, 30, 0, 600), null);
  assert.equal(scrollTo(40, 1000, 30, 0, 600), 41 * 30 - 600);
  assert.equal(scrollTo(2, 1000, 30, 600, 600), 60);
});

test("picked rows are in the given order", () => {
  const rows = new Picked(["a", "b", "c"], [2, 0]);
  assert.deepEqual([rows.length, rows.at(0), rows.at(1), rows.at(2)], [2, "c", "a", undefined]);
});
