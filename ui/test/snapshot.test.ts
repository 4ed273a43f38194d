import assert from "node:assert/strict";
import { test } from "node:test";
import { unpacked } from "../src/data/documents.ts";
import { indexLines, searchLog } from "../src/data/log-text.ts";
import { Problem } from "../src/data/problem.ts";
import { keyOf, type Manifest, openSnapshot, SnapshotSource } from "../src/data/snapshot.ts";

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

const TASKS = {
  run: { id: "7f3k000000" },
  tasks: [
    { name: "extract", index: null, status: "success" },
    { name: "load", index: null, status: "failed" },
    { name: "load", index: 0, status: "success" },
    { name: "load", index: 7, status: "failed" },
    { name: "publish", index: null, status: "skipped" },
  ],
  cursor: null,
};

const DOCUMENTS: Record<string, unknown> = {
  "overview.json": { "/overview": { since: "2026-11-01T00:00:00Z", failures: [{ created_at: "2026-11-02T00:00:00Z" }, { created_at: "2026-11-05T00:00:00Z" }] } },
  "runs/2026-11.json": {
    runs: [
      { id: "9a1c000000", workflow: "nightly", status: "success", created_at: "2026-11-05T00:00:00Z", started_at: "2026-11-05T00:00:00Z", finished_at: "2026-11-05T00:00:09Z" },
      { id: "7f3k000000", workflow: "my_etl", status: "failed", created_at: "2026-11-02T00:00:00Z", started_at: "2026-11-02T00:00:00Z", finished_at: "2026-11-02T00:01:00Z" },
    ],
  },
  "run/7f3k000000.json": {
    "/runs/{run}/tasks": TASKS,
    "/runs/{run}/attempts": { attempts: [{ task: "load", index: 7, attempt: 1 }, { task: "extract", index: null, attempt: 1 }], cursor: null },
    "/runs/{run}/why task=load[7]": { sentences: ["503"] },
    "/runs/{run}/diff/{other} other=9a1c000000": { a: "later" },
    "/runs/{run}/diff/{other} from=9a1c000000": { a: "earlier" },
  },
  "run/9a1c000000.json": {},
  "log/7f3k000000/load.7.1.txt": "one\nGET 503\nthree é\nget 503",
};

function snapshot(documents = DOCUMENTS): SnapshotSource {
  const manifest: Manifest = {
    format: 1, as_of: "2026-11-06T14:00:00Z", version: "1", installation: null, start: null, more_runs: false,
    runs: { "9a1c000000": "", "7f3k000000": "" },
    documents: Object.fromEntries(Object.keys(documents).map((name) => [name, ""])),
  };
  const read = (name: string): Promise<Uint8Array> => {
    const found = documents[name];
    return Promise.resolve(bytes(typeof found === "string" ? found : JSON.stringify(found)));
  };
  return new SnapshotSource({ read }, manifest);
}

const LOG = { run: "7f3k", name: "load", index: 7, number: 1 };
const LOG_PATH = "/runs/{run}/tasks/{name}/{index}/attempts/{number}/log";

test("runs are filtered, sorted and paged", async () => {
  const source = snapshot();
  assert.deepEqual((await source.get("/runs", {})).runs.map((run) => run.id), ["9a1c000000", "7f3k000000"]);
  assert.deepEqual((await source.get("/runs", { status: ["failed"] })).runs.map((run) => run.id), ["7f3k000000"]);
  assert.deepEqual((await source.get("/runs", { q: "NIGHT" })).runs.map((run) => run.id), ["9a1c000000"]);
  assert.deepEqual((await source.get("/runs", { created_after: "2026-11-03T00:00:00Z" })).runs.map((run) => run.id), ["9a1c000000"]);
  assert.deepEqual((await source.get("/runs", { sort: "-duration" })).runs.map((run) => run.id), ["7f3k000000", "9a1c000000"]);
  const page = await source.get("/runs", { limit: 1 });
  assert.equal(page.cursor, "1");
  assert.deepEqual((await source.get("/runs", { limit: 1, cursor: page.cursor })).runs.map((run) => run.id), ["7f3k000000"]);
});

test("tasks are paged by their names, as the API does", async () => {
  const source = snapshot();
  const next = await source.get("/runs/{run}/tasks", { run: "7f3k", name: "load", cursor: "load[6]", limit: 1 });
  assert.deepEqual(next.tasks.map((row) => row.index), [7]);
  const first = await source.get("/runs/{run}/tasks", { run: "7f3k", limit: 2 });
  assert.equal(first.cursor, "load");
  const failed = await source.get("/runs/{run}/tasks", { run: "7f3k", status: ["failed"], cursor: "load" });
  assert.deepEqual(failed.tasks.map((row) => row.index), [7]);
  const attempts = await source.get("/runs/{run}/attempts", { run: "7f3k", task: "extract", index: 0 });
  assert.equal(attempts.attempts.length, 1);
});

test("what was not exported is a problem that says so", async () => {
  const isMissing = (error: unknown): boolean => error instanceof Problem && error.title === "Not in this snapshot";
  const source = snapshot();
  assert.ok(await source.get("/runs/{run}/why", { run: "7f3k", task: "load[7]" }));
  await assert.rejects(source.get("/runs/{run}/why", { run: "7f3k", task: "load[8]" }), isMissing);
  await assert.rejects(source.get("/runs/{run}/summary", { run: "zzzz" }), isMissing);
  await assert.rejects(source.get("/tokens", {}), isMissing);
  await assert.rejects(source.get("/workflows/{name}", { name: "constructor" }), isMissing);
  await assert.rejects(source.bytes(LOG_PATH, { ...LOG, number: 2 }, 0), isMissing);
  await assert.rejects(source.act("POST /runs/{run}/retry"), (error) => error instanceof Problem);
});

test("two runs are compared in both directions", async () => {
  const source = snapshot();
  assert.deepEqual(await source.get("/runs/{run}/diff/{other}", { run: "7f3k", other: "9a1c" }), { a: "later" });
  assert.deepEqual(await source.get("/runs/{run}/diff/{other}", { run: "9a1c", other: "7f3k" }), { a: "earlier" });
  await assert.rejects(source.get("/runs/{run}/diff/{other}", { run: "9a1c", other: "9a1c" }), (error) => error instanceof Problem);
});

test("a log has ranges, lines and hits", async () => {
  const source = snapshot();
  const end = await source.bytes(LOG_PATH, LOG, -7);
  assert.deepEqual([new TextDecoder().decode(end.bytes), end.start, end.size], ["get 503", 21, 28]);
  assert.equal((await source.bytes(LOG_PATH, LOG, 1000)).bytes.length, 0);
  assert.deepEqual((await source.get(`${LOG_PATH}/lines`, { ...LOG, every: 2 })).offsets, [0, 12]);
  assert.deepEqual((await source.get(`${LOG_PATH}/search`, { ...LOG, q: "GET" })).hits.map((hit) => hit.line), [2]);
  assert.equal((await source.get("/runs/{run}/logs/search", { run: "7f3k", q: "get", ignore_case: true })).total, 2);
  const reader = (await source.stream(LOG_PATH, LOG)).getReader();
  assert.equal((await reader.read()).value?.length, 28);
});

test("an overview has the failures since a time", async () => {
  const found = await snapshot().get("/overview", { since: "2026-11-03T00:00:00Z" });
  assert.equal(found.failures.length, 1);
});

test("a snapshot of another format is not read", async () => {
  const documents = { read: () => Promise.resolve(bytes('{"format": 99, "version": "9"}')) };
  await assert.rejects(openSnapshot(documents), (error) => error instanceof Problem && error.detail.includes("Ork 9"));
});

test("keys name what distinguishes answers, and nothing that only cuts them", () => {
  assert.equal(keyOf("/runs/{run}/why", { name: undefined, task: "load" }), "/runs/{run}/why task=load");
  assert.equal(keyOf("/runs/{run}/tasks/{name}/{index}/output", { name: "load", index: 3, preview: 50 }), "/runs/{run}/tasks/{name}/{index}/output index=3 name=load");
  assert.equal(keyOf("/schedules", { next: 3, limit: 100 }), "/schedules");
});

test("packed documents are found by their names", async () => {
  const index = bytes('[["a",2],["b",1]]');
  const packed = new Uint8Array([0, 0, 0, index.length, ...index, ...bytes("xyz")]);
  assert.equal(new TextDecoder().decode(await unpacked(packed).read("b")), "z");
  await assert.rejects(unpacked(packed).read("c"), (error) => error instanceof Problem);
});

test("empty logs and lines without an end", () => {
  assert.deepEqual(indexLines(new Uint8Array(), 100), { offsets: [0], lines: 0, size: 0, every: 100, is_complete: true });
  assert.equal(indexLines(bytes("a\nb"), 100).lines, 2);
  assert.equal(searchLog(bytes("a\nb\n"), "b", false, 5).hits[0]?.offset, 2);
});
