import assert from "node:assert/strict";
import { test } from "node:test";
import { ROUTES } from "../src/pages.ts";
import { below, changedQuery, hrefBelow, match, path } from "../src/router.ts";

test("every address has its page", () => {
  const page = (address: string): string | undefined => match(ROUTES, address)?.page;
  assert.equal(page(""), "home");
  assert.equal(page("runs"), "runs");
  assert.equal(page("runs/7f3k"), "run");
  assert.equal(page("runs/7f3k/compare/9a1c"), "compare");
  assert.equal(page("runs/7f3k/tasks/load/3/1"), "task");
  assert.equal(page("workflows/my_etl/"), "workflow");
  assert.equal(page("nothing"), undefined);
});

test("segments are decoded and encoded", () => {
  const name = "a/b ü?#";
  assert.equal(match(ROUTES, path("workflows", name))?.params["name"], name);
  assert.equal(match(ROUTES, "workflows/%E0%A4%A"), null);
  assert.equal(match(ROUTES, "runs/__proto__")?.params["id"], "__proto__");
});

test("a query keeps what is not changed", () => {
  const query = new URLSearchParams("status=failed&q=x&q=y");
  assert.equal(changedQuery(query, { status: null }), "?q=x&q=y");
  assert.equal(changedQuery(query, { q: "z", page: 2 }), "?status=failed&q=z&page=2");
  assert.equal(changedQuery(query, { status: "", q: [] }), "");
});

test("addresses are below a path, or in the fragment of a file", () => {
  const server = { prefix: "/ui/", isFile: false };
  const file = { prefix: "", isFile: true };
  assert.deepEqual(below(server, new URL("http://h/ui/runs/7f3k?view=graph#L2")), { path: "runs/7f3k", search: "?view=graph" });
  assert.deepEqual(below(server, new URL("http://h/ui")), { path: "", search: "" });
  assert.equal(below(server, new URL("http://h/api/v1/runs")), null);
  assert.deepEqual(below(file, new URL("file:///r.html#/runs/7f3k?view=graph")), { path: "runs/7f3k", search: "?view=graph" });
  assert.equal(hrefBelow(server, "runs"), "/ui/runs");
  assert.equal(hrefBelow(file, "runs"), "#/runs");
});
