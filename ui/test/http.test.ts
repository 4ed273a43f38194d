import assert from "node:assert/strict";
import { test } from "node:test";
import { contentRange, HttpSource } from "../src/data/http.ts";
import { Problem } from "../src/data/problem.ts";
import { address } from "../src/data/source.ts";
import { pauseBefore } from "../src/data/backoff.ts";

interface Sent { url: string; init: RequestInit }

function sourceThat(answer: () => Response | Promise<Response>, sent: Sent[] = []): { source: HttpSource; sent: Sent[]; outs: number[] } {
  const outs: number[] = [];
  const fetcher = async (url: string | URL | Request, init?: RequestInit): Promise<Response> => { sent.push({ url: String(url), init: init ?? {} }); return answer(); };
  return { source: new HttpSource({ half: () => "page-half", onSignedOut: () => outs.push(1) }, fetcher as typeof fetch), sent, outs };
}

const problem = (status: number, body: object, headers: Record<string, string> = {}): Response => new Response(JSON.stringify(body), { status, headers: { "Content-Type": "application/problem+json", ...headers } });

test("addresses are filled and encoded", () => {
  assert.equal(address("/runs/{run}/tasks", { run: "a/b", limit: 5, status: ["failed", "lost"], name: null }), "/runs/a%2Fb/tasks?limit=5&status=failed&status=lost");
  assert.throws(() => address("/runs/{run}", {}), /needs run/);
});

test("requests carry the page's half of the session", async () => {
  const { source, sent } = sourceThat(() => Response.json({ runs: [], cursor: null }));
  await source.get("/runs", { limit: 5 });
  assert.equal(sent[0]?.url, "/api/v1/runs?limit=5");
  assert.equal((sent[0]?.init.headers as Record<string, string>)["X-Ork-Session"], "page-half");
});

test("a problem document becomes a Problem", async () => {
  const { source } = sourceThat(() => problem(503, { title: "Unavailable", detail: "no store", hint: "wait", code: "ORK801" }, { "Retry-After": "7" }));
  await assert.rejects(source.get("/status", {}), (error) => error instanceof Problem && error.kind === "busy" && error.isPassing && error.code === "ORK801" && error.retryAfter === 7);
});

test("401 tells the session; an answer that is no JSON has a title still", async () => {
  const { source, outs } = sourceThat(() => new Response("<html>", { status: 401 }));
  await assert.rejects(source.get("/status", {}), (error) => error instanceof Problem && error.kind === "signed out" && error.title === "You are signed out");
  assert.equal(outs.length, 1);
});

test("a broken connection and half an answer are disconnected", async () => {
  const broken = sourceThat(() => { throw new TypeError("failed to fetch"); });
  await assert.rejects(broken.source.get("/status", {}), (error) => error instanceof Problem && error.kind === "disconnected");
  const half = sourceThat(() => new Response('{"runs": ['));
  await assert.rejects(half.source.get("/runs", {}), (error) => error instanceof Problem && error.kind === "disconnected");
});

test("an action sends its method and body; no content is null", async () => {
  const { source, sent } = sourceThat(() => new Response(null, { status: 204 }));
  assert.equal(await source.act("DELETE /tokens/{id}", { id: "t1" }), null);
  assert.deepEqual([sent[0]?.init.method, sent[0]?.url], ["DELETE", "/api/v1/tokens/t1"]);
});

test("the end of a log that is shorter than asked, and beyond its end", async () => {
  const given = { run: "r", name: "t", index: 0, number: 1 };
  const log = "/runs/{run}/tasks/{name}/{index}/attempts/{number}/log" as const;
  const part = sourceThat(() => new Response("abc", { status: 206, headers: { "Content-Range": "bytes 7-9/10" } }));
  const piece = await part.source.bytes(log, given, -3);
  assert.deepEqual([piece.start, piece.size, piece.bytes.length], [7, 10, 3]);
  assert.equal((part.sent[0]?.init.headers as Record<string, string>)["Range"], "bytes=-3");
  const beyond = sourceThat(() => new Response("", { status: 416, headers: { "Content-Range": "bytes */10" } }));
  assert.deepEqual((await beyond.source.bytes(log, given, 10)).bytes.length, 0);
  assert.equal(contentRange("nonsense"), null);
});

test("pauses grow and end", () => {
  assert.deepEqual([0, 1, 2, 5, 50].map((tries) => pauseBefore(tries, () => 0)), [1, 2, 4, 30, 30]);
});
