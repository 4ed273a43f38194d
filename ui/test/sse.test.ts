import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser } from "../src/data/sse.ts";

const TEXT = ': still here\n\nid: m1\nevent: ready\ndata: {}\n\nevent: run\ndata: {"a":\ndata: 1}\n\nevent: mark\r\nid: m2\r\ndata: {}\r\n\r\n';
const EVENTS = [
  { event: "ready", data: "{}", id: "m1" },
  { event: "run", data: '{"a":\n1}', id: "m1" },
  { event: "mark", data: "{}", id: "m2" },
];

test("events are the same however the stream is cut", () => {
  for (let size = 1; size <= TEXT.length; size += 1) {
    const parser = new EventParser();
    const found = [];
    for (let at = 0; at < TEXT.length; at += size) found.push(...parser.push(TEXT.slice(at, at + size)));
    assert.deepEqual(found, EVENTS, `pieces of ${size}`);
  }
});

test("an event without data, and one that is not complete, are no events", () => {
  const parser = new EventParser();
  assert.deepEqual(parser.push("event: run\n\n"), []);
  assert.deepEqual(parser.push("data: half"), []);
  assert.deepEqual(parser.push("\n\n"), [{ event: "message", data: "half", id: null }]);
});
