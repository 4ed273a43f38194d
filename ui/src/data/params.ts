/** Params of a workflow as fields of a form: how they are shown, read from text, and written as a command. */

import { argument } from "../words.ts";

export type Control = "text" | "date" | "datetime" | "int" | "float" | "bool" | "choice" | "json";

export interface ParamField {
  name: string;
  /** As the workflow writes it: `list[int]`. */
  type: string;
  control: Control;
  /** The values of a choice. */
  options: readonly unknown[];
  required: boolean;
  /** The type includes null. */
  isOptional: boolean;
  default: unknown;
  description: string | null;
  sensitive: boolean;
  /** What a time ends with: `Z`, or nothing if the default has no zone. */
  zone: string;
}

/** What the texts of a form mean: the params that differ from their defaults, and what is wrong with the others. */
export interface Entered {
  params: Record<string, unknown>;
  errors: Record<string, string>;
}

/** The fields of a definition's params, in its order. Anything that is not understood is a JSON field. */
export function paramFields(definition: Readonly<Record<string, unknown>> | null): ParamField[] {
  const types = namedTypes(definition?.["types"]);
  const params = definition?.["params"];
  return (Array.isArray(params) ? params : []).filter(isRecord).map((param) => {
    const type = String(param["type"] ?? "any");
    const required = param["required"] !== false;
    const given = param["default"] ?? null;
    const found = { ...controlOf(type, types), isOptional: isOptional(type) };
    const isOdd = found.control === "datetime" && typeof given === "string" && !isPlainTime(given);
    return {
      name: String(param["name"]), type, required, default: given,
      ...found, control: isOdd ? "text" : found.control,
      description: typeof param["description"] === "string" ? param["description"] : null,
      sensitive: param["sensitive"] === true,
      zone: typeof given === "string" && !given.endsWith("Z") ? "" : "Z",
    };
  });
}

/** The text that a field starts with. */
export function textOf(field: ParamField, value: unknown): string {
  if (value === null || value === undefined || field.sensitive) return "";
  if (field.control === "choice" || field.control === "json") return typeof value === "string" && field.type === "any" ? value : JSON.stringify(value);
  const text = String(value);
  return field.control === "datetime" ? text.replace(/Z$/, "").slice(0, 19) : text;
}

/** Reads all texts. A param that has its default is left to the server. */
export function entered(fields: readonly ParamField[], texts: Readonly<Record<string, string>>): Entered {
  const found: Entered = { params: {}, errors: {} };
  for (const field of fields) {
    const text = Object.hasOwn(texts, field.name) ? (texts[field.name] ?? "") : textOf(field, field.default);
    try {
      const value = valueOf(field, text);
      if (value === undefined) continue;
      if (field.required || JSON.stringify(value) !== JSON.stringify(field.default)) define(found.params, field.name, value);
    } catch (error) {
      define(found.errors, field.name, (error as Error).message);
    }
  }
  return found;
}

/** The value of a text; undefined leaves the param out. Throws what is wrong with it. */
export function valueOf(field: ParamField, text: string): unknown {
  if (text === "") return emptyValue(field);
  switch (field.control) {
    case "int":
      if (!/^[-+]?\d+$/.test(text.trim())) throw new Error("This is not a whole number.");
      return Number(text);
    case "float":
      if (!Number.isFinite(Number(text))) throw new Error("This is not a number.");
      return Number(text);
    case "bool": return text === "true";
    case "date":
      if (!/^\d{4}-\d\d-\d\d$/.test(text)) throw new Error("This is not a date such as 2026-01-31.");
      return text;
    case "datetime": return (text.length === 16 ? `${text}:00` : text) + field.zone;
    case "choice": return JSON.parse(text) as unknown;
    case "json": return jsonOf(field, text);
    default: return text;
  }
}

/** Options of the command line: ` -p day=2026-01-31 -p 'parts=[1,2]'`. A secret is named as a variable of the shell. */
export function paramOptions(fields: readonly ParamField[], params: Readonly<Record<string, unknown>>): string {
  return fields
    .filter((field) => Object.hasOwn(params, field.name))
    .map((field) => ` -p ${field.sensitive ? `${field.name}="$${variable(field.name)}"` : argument(`${field.name}=${shellText(field, params[field.name])}`)}`)
    .join("");
}

/** The server's complaint about params, by param: "param day: … is not a date; param …". What is about no param is `rest`. */
export function complaints(detail: string, fields: readonly ParamField[]): { errors: Record<string, string>; rest: string } {
  const errors: Record<string, string> = {};
  const rest: string[] = [];
  for (const part of detail.split(/; (?=param `|there is no param `)/)) {
    const [, name, text] = /^param `([^`]+)`:? ?(.*)$/s.exec(part) ?? [];
    if (name !== undefined && fields.some((field) => field.name === name)) define(errors, name, sentence(text ?? part));
    else rest.push(part);
  }
  return { errors, rest: rest.join("; ") };
}

function sentence(text: string): string {
  const plain = text.replaceAll("`", "");
  return `${plain.startsWith("is ") ? `This ${plain}` : plain}.`.replace(/\.\.$/, ".");
}

function emptyValue(field: ParamField): unknown {
  if (field.control === "text" && !field.required && typeof field.default === "string") return "";
  if (field.required && !field.isOptional) throw new Error("A value is needed.");
  if (field.required) return null;
  return undefined;
}

function jsonOf(field: ParamField, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // As on the command line: what is no JSON is text, where the type allows any value.
    if (field.type === "any") return text;
    throw new Error(`This is not JSON: ${(error as Error).message}.`);
  }
}

function shellText(field: ParamField, value: unknown): string {
  if (typeof value === "string" && field.control !== "json") return value;
  return JSON.stringify(value);
}

function variable(name: string): string {
  return name.toUpperCase().replace(/\W/g, "_");
}

const SCALARS: Readonly<Record<string, Control>> = { str: "text", int: "int", float: "float", bool: "bool", date: "date", datetime: "datetime" };

function controlOf(type: string, types: ReadonlyMap<string, unknown>): { control: Control; options: readonly unknown[] } {
  const members = split(type.replace(/\?$/, "")).filter((each) => each !== "none");
  const literals = members.map(literal);
  if (members.length > 0 && literals.every((each) => each !== undefined)) return { control: "choice", options: literals };
  const only = members.length === 1 ? (members[0] as string) : "";
  const named = types.get(only);
  if (isRecord(named) && Array.isArray(named["enum"])) return { control: "choice", options: named["enum"] };
  if (typeof named === "string" && Object.hasOwn(SCALARS, named)) return { control: SCALARS[named] as Control, options: [] };
  return { control: (Object.hasOwn(SCALARS, only) ? SCALARS[only] : undefined) ?? "json", options: [] };
}

function isOptional(type: string): boolean {
  return type.endsWith("?") || type === "any" || split(type).includes("none");
}

/** The members of a union: at `|` outside of brackets and quotes. */
function split(type: string): string[] {
  const found: string[] = [];
  let depth = 0;
  let part = "";
  for (const token of type.match(/"(?:[^"\\]|\\.)*"|./gs) ?? []) {
    if (token === "|" && depth === 0) {
      found.push(part.trim());
      part = "";
      continue;
    }
    if ("[{(".includes(token)) depth += 1;
    else if ("]})".includes(token)) depth -= 1;
    part += token;
  }
  return [...found, part.trim()];
}

function literal(text: string): unknown {
  if (!/^("(?:[^"\\]|\\.)*"|-?\d+|true|false)$/s.test(text)) return undefined;
  return JSON.parse(text) as unknown;
}

function isPlainTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z?$/.test(text);
}

function namedTypes(pairs: unknown): Map<string, unknown> {
  return new Map(Array.isArray(pairs) ? (pairs as [string, unknown][]) : []);
}

/** A param may be called `__proto__`. */
function define<T>(into: Record<string, T>, name: string, value: T): void {
  Object.defineProperty(into, name, { value, enumerable: true, configurable: true, writable: true });
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
