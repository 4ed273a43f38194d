import assert from "node:assert/strict";
import { test } from "node:test";
import { afterReturns, marked, plain, spans, text } from "../src/log/ansi.ts";
import { foldsOf, levelOf, timeOf } from "../src/log/kinds.ts";
import { moved, placesAround, shareOf, spaceOf } from "../src/log/layout.ts";
import { hashOfLines, KEPT, linesOfHash, Splitter } from "../src/log/lines.ts";
import { Scanner } from "../src/log/scan.ts";
import { placesOf } from "../src/log/search.ts";

const bytes = (given: string): Uint8Array => new TextEncoder().encode(given);

test("colours become classes, and each line begins without them", () => {
  assert.deepEqual(spans("\x1b[1;31mERROR\x1b[0m at \x1b[38;5;196mred\x1b[39m"), [
    { text: "ERROR", look: "red bold" },
    { text: " at ", look: "" },
    { text: "red", look: "red" },
  ]);
  assert.deepEqual(spans("\x1b[41mwhite on red"), [{ text: "white on red", look: "on-red" }]);
  assert.deepEqual(spans("\x1b[38;2;250;10;10mred\x1b[48;5;21m"), [{ text: "red", look: "red" }]);
});

test("sequences that move the cursor, set titles or make links leave no trace", () => {
  const hostile = "\x1b[2J\x1b[H\x1b]0;title\x07\x1b]8;;javascript:alert(1)\x1b\\click\x1b]8;;\x1b\\ \x1bPq\x1b\\end";
  assert.equal(text(spans(hostile)), "click end");
  assert.equal(plain(hostile), "click end");
  assert.equal(text(spans("cut \x1b[3")), "cut ");
  assert.equal(text(spans("open \x1b]8;;http://x")), "open ");
});

test("control characters and direction overrides are shown by name", () => {
  const found = spans("a\0b\u202ec\td");
  assert.equal(text(found), "a^@b⟨U+202E⟩c\td");
  assert.deepEqual(found.filter((span) => span.isControl).map((span) => span.text), ["^@", "⟨U+202E⟩"]);
});

test("a carriage return overwrites, and how often is told", () => {
  assert.deepEqual(afterReturns(" 0%\r50%\r100%\r"), { text: "100%", overwritten: 2 });
  assert.deepEqual(afterReturns("dos line\r"), { text: "dos line", overwritten: 0 });
});

test("hits become spans of their own across colours", () => {
  const found = marked(spans("ab\x1b[31mcd\x1b[0mef"), [[1, 3], [5, 6]]);
  assert.deepEqual(found.map((span) => [span.text, span.look]), [["a", ""], ["b", "hit"], ["c", "red hit"], ["d", "red"], ["e", ""], ["f", "hit"]]);
  assert.deepEqual(placesOf({ text: "Er", isPattern: false, ignoreCase: true }, "error ER"), [[0, 2], [6, 8]]);
});

test("lines are split wherever pieces end", () => {
  const whole = "one\n\ntwö\nthree";
  for (let size = 1; size <= bytes(whole).length; size += 1) {
    const splitter = new Splitter(10);
    const lines = [];
    for (let at = 0; at < bytes(whole).length; at += size) lines.push(...splitter.push(bytes(whole).subarray(at, at + size)));
    assert.deepEqual(lines, [{ offset: 10, length: 3, text: "one" }, { offset: 14, length: 0, text: "" }, { offset: 15, length: 4, text: "twö" }], String(size));
    assert.deepEqual(splitter.rest(), { offset: 20, length: 5, text: "three" });
    assert.equal(splitter.end, 25);
  }
});

test("of a long line the beginning is kept, without half a character", () => {
  const splitter = new Splitter(0);
  const [line] = splitter.push(bytes(`x${"ö".repeat(KEPT)}\n`));
  assert.equal(line?.length, 1 + 2 * KEPT);
  assert.ok(line && line.text.length < KEPT && !line.text.includes("\ufffd"));
});

test("the address names lines", () => {
  assert.deepEqual(linesOfHash("L219-L212"), { first: 212, last: 219 });
  assert.deepEqual(linesOfHash("L7"), { first: 7, last: 7 });
  for (const wrong of ["", "L0", "Lx", "L1-", "L1-L2-L3", "ticket=L1"]) assert.equal(linesOfHash(wrong), null, wrong);
  assert.equal(hashOfLines(212, 219), "L212-L219");
  assert.equal(hashOfLines(7), "L7");
});

test("levels and times are seen behind colours", () => {
  assert.equal(levelOf("\x1b[31mERROR\x1b[0m no"), "error");
  assert.equal(levelOf("ValueError: x"), "error");
  assert.equal(levelOf("Traceback (most recent call last):"), "error");
  assert.equal(levelOf("INFO 0 errors"), null);
  assert.equal(levelOf("WARNING slow"), "warning");
  assert.equal(timeOf("2026-11-18T06:25:20.5Z INFO"), Date.parse("2026-11-18T06:25:20.500Z"));
  assert.equal(timeOf("[2026-11-18 06:25:20,123] x"), Date.parse("2026-11-18T06:25:20.123Z"));
  assert.equal(timeOf("at 2026-11-18"), null);
});

test("frames of libraries are folded, the user's are not", () => {
  const lines = [
    "Traceback (most recent call last):",
    '  File "/srv/tasks.py", line 1, in a',
    "    b()",
    '  File "/x/site-packages/r.py", line 1, in b',
    "    c()",
    "    ^^^",
    '  File "/usr/lib/python3.12/json/d.py", line 1, in c',
    '  File "/srv/tasks.py", line 9, in d',
    "    raise",
    "ValueError: no",
  ];
  assert.deepEqual(foldsOf(lines, 1000), [{ first: 1003, last: 1006, frames: 2 }]);
});

test("a scanner finds lines across pieces, and counts beyond what it keeps", () => {
  const scanner = new Scanner({ pattern: "b.d|end$", flags: "", most: 2 });
  const hits = [...scanner.push(bytes("abc\nb")), ...scanner.push(bytes("\x1b[31mad\x1b[0m\nbed\nbid\nx")), ...scanner.push(bytes(" end")), ...scanner.end()];
  assert.deepEqual(hits, [{ line: 2, text: "bad", at: [0, 3] }, { line: 3, text: "bed", at: [0, 3] }]);
  assert.equal(scanner.total, 4);
});

test("a line that is longer than the memory for it is found once", () => {
  const scanner = new Scanner({ pattern: "x", flags: "", most: 10 });
  const piece = bytes("x".repeat(1 << 20));
  const hits = [...Array(6).keys()].flatMap(() => scanner.push(piece));
  assert.deepEqual([...hits, ...scanner.push(bytes("\ny\n")), ...scanner.end()].map((hit) => hit.line), [1]);
});

test("rows are laid out around the anchor, folds as one row", () => {
  const none = (): undefined => undefined;
  const around = placesAround({ place: 500, y: 100 }, 1000, 200, 20, none);
  assert.ok((around[0] ?? 0) <= 495 && (around.at(-1) ?? 0) >= 505);
  assert.deepEqual(placesAround({ place: 0, y: 0 }, 3, 200, 20, none), [0, 1, 2]);
  const end = placesAround({ place: 1000, y: 200 }, 1000, 200, 20, none);
  assert.equal(end.at(-1), 999);
  assert.ok(end.length >= 10);
  const fold = (place: number): { first: number; last: number } | undefined => (place >= 2 && place <= 900 ? { first: 2, last: 900 } : undefined);
  const folded = placesAround({ place: 450, y: 0 }, 1000, 100, 20, fold);
  assert.deepEqual(folded.slice(0, 4), [0, 1, 2, 901]);
});

test("the scroll bar is capped, and positions are shares of it", () => {
  assert.deepEqual(spaceOf(10, 20, 600), { height: 600, reach: 0, isScaled: false });
  assert.deepEqual(spaceOf(2_000_000, 20, 600), { height: 8_000_000, reach: 7_999_400, isScaled: true });
  assert.equal(shareOf({ place: 0, y: 0 }, 20, 1000, 30), 0);
  assert.equal(shareOf({ place: 970, y: 0 }, 20, 1000, 30), 1);
  assert.deepEqual(moved({ place: 5, y: -3 }, 40), { place: 5, y: -43 });
});
