import assert from "node:assert/strict";
import { test } from "node:test";
import type { ParamField } from "../src/api.d.ts";
import { complaints, entered, paramFields, paramOptions, textOf } from "../src/data/params.ts";

const param = (name: string, kind: ParamField["kind"], more: Partial<ParamField> = {}): ParamField => ({ name, type: kind, kind, choices: null, may_be_null: false, required: false, default: null, description: null, sensitive: false, ...more });

const FIELDS = paramFields([
  param("day", "date", { required: true }),
  param("region", "choice", { choices: ["eu", "us | ca"], default: "eu" }),
  param("limit", "int", { type: "int?", may_be_null: true }),
  param("parts", "list", { type: "list[int]", default: [] }),
  param("at", "datetime", { default: "2026-01-31T02:00:00Z" }),
  param("odd", "datetime", { default: "2026-01-31T02:00:00+02:00" }),
  param("key", "str", { required: true, sensitive: true }),
  param("note", "str", { default: "x" }),
  param("free", "json", { type: "any", may_be_null: true }),
  param("__proto__", "str", { default: "p" }),
]);
const field = (name: string) => FIELDS.find((each) => each.name === name)!;

test("a param has the control of its kind", () => {
  assert.deepEqual(FIELDS.map((each) => each.control), ["date", "choice", "int", "json", "datetime", "text", "text", "text", "json", "text"]);
});

test("only what differs from the defaults is sent", () => {
  const found = entered(FIELDS, { day: "2026-02-01", key: "s3cret", region: '"us | ca"', limit: "7", at: "2026-02-01T03:00" });
  assert.deepEqual(found.errors, {});
  assert.deepEqual({ ...found.params }, { day: "2026-02-01", region: "us | ca", limit: 7, at: "2026-02-01T03:00:00Z", key: "s3cret" });
});

test("what is missing or wrong is said at its field", () => {
  const { errors } = entered(FIELDS, { limit: "1.5", parts: "[1,", note: "" });
  assert.deepEqual(Object.keys(errors).sort(), ["day", "key", "limit", "parts"]);
  assert.ok(/not JSON/.test(errors["parts"] ?? ""));
});

test("an empty text replaces a default; an empty optional number does not", () => {
  const { params } = entered(FIELDS, { day: "2026-02-01", key: "k", note: "", limit: "" });
  assert.equal(params["note"], "");
  assert.ok(!("limit" in params));
});

test("any value: JSON, else text, as on the command line", () => {
  const value = (text: string) => entered([field("free")], { free: text }).params["free"];
  assert.deepEqual([value("[1]"), value("hello"), value('"1"')], [[1], "hello", "1"]);
});

test("a name such as __proto__ is a name", () => {
  const texts = JSON.parse('{"__proto__": "changed"}') as Record<string, string>;
  const { params } = entered([field("__proto__")], texts);
  assert.deepEqual(Object.entries(params), [["__proto__", "changed"]]);
});

test("the command has no secret and is quoted", () => {
  const { params } = entered(FIELDS, { day: "2026-02-01", key: "s3cret", region: '"us | ca"', parts: "[1, 2]" });
  assert.equal(paramOptions(FIELDS, params), ` -p day=2026-02-01 -p 'region=us | ca' -p 'parts=[1,2]' -p key="$KEY"`);
});

test("texts of an earlier run", () => {
  assert.equal(textOf(field("parts"), [3, 4]), "[3,4]");
  assert.equal(textOf(field("region"), "eu"), '"eu"');
  assert.equal(textOf(field("key"), "•••"), "");
});

test("complaints of the server stand at their fields", () => {
  const found = complaints("param `limit`: `x` is not a whole number; param `day` is missing; there is no param `dya`", FIELDS);
  assert.deepEqual(found.errors, { limit: "x is not a whole number.", day: "This is missing." });
  assert.equal(found.rest, "there is no param `dya`");
});
