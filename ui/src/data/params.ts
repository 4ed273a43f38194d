/** Params of a workflow as fields of a form: how they are shown, read from text, and written as a command. */

import type { ParamField } from "../api.d.ts";
import { argument } from "../words.ts";

export type Control = "text" | "date" | "datetime" | "int" | "float" | "bool" | "choice" | "json";

export interface FormField extends ParamField {
  control: Control;
  /** What a time ends with: `Z`, or nothing if the default has no zone. */
  zone: string;
}

/** What the texts of a form mean: the params that differ from their defaults, and what is wrong with the others. */
export interface Entered {
  params: Record<string, unknown>;
  errors: Record<string, string>;
}

const CONTROLS: Readonly<Record<ParamField["kind"], Control>> = {
  str: "text", int: "int", float: "float", bool: "bool", date: "date", datetime: "datetime", choice: "choice", list: "json", json: "json",
};

/** The fields of a form, in the order of the params. */
export function paramFields(params: readonly ParamField[]): FormField[] {
  return params.map((param) => {
    const given = param.default;
    // The browser's field for times knows no offsets.
    const isOdd = param.kind === "datetime" && typeof given === "string" && !isPlainTime(given);
    return { ...param, control: isOdd ? "text" : CONTROLS[param.kind], zone: typeof given === "string" && !given.endsWith("Z") ? "" : "Z" };
  });
}

/** The text that a field starts with. */
export function textOf(field: FormField, value: unknown): string {
  if (value === null || value === undefined || field.sensitive) return "";
  if (field.control === "choice" || field.control === "json") return typeof value === "string" && field.type === "any" ? value : JSON.stringify(value);
  const text = String(value);
  return field.control === "datetime" ? text.replace(/Z$/, "").slice(0, 19) : text;
}

/** Reads all texts. A param that has its default is left to the server. */
export function entered(fields: readonly FormField[], texts: Readonly<Record<string, string>>): Entered {
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
export function valueOf(field: FormField, text: string): unknown {
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
export function paramOptions(fields: readonly FormField[], params: Readonly<Record<string, unknown>>): string {
  return fields
    .filter((field) => Object.hasOwn(params, field.name))
    .map((field) => ` -p ${field.sensitive ? `${field.name}="$${variable(field.name)}"` : argument(`${field.name}=${shellText(field, params[field.name])}`)}`)
    .join("");
}

/** The server's complaint about params, by param: "param day: … is not a date; param …". What is about no param is `rest`. */
export function complaints(detail: string, fields: readonly FormField[]): { errors: Record<string, string>; rest: string } {
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

function emptyValue(field: FormField): unknown {
  if (field.control === "text" && !field.required && typeof field.default === "string") return "";
  if (field.required && !field.may_be_null) throw new Error("A value is needed.");
  if (field.required) return null;
  return undefined;
}

function jsonOf(field: FormField, text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    // As on the command line: what is no JSON is text, where the type allows any value.
    if (field.type === "any") return text;
    throw new Error(`This is not JSON: ${(error as Error).message}.`);
  }
}

function shellText(field: FormField, value: unknown): string {
  if (typeof value === "string" && field.control !== "json") return value;
  return JSON.stringify(value);
}

function variable(name: string): string {
  return name.toUpperCase().replace(/\W/g, "_");
}

function isPlainTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?Z?$/.test(text);
}

/** A param may be called `__proto__`. */
function define<T>(into: Record<string, T>, name: string, value: T): void {
  Object.defineProperty(into, name, { value, enumerable: true, configurable: true, writable: true });
}
