/** Tasks of a compiled workflow, as people write them. */

export interface Input {
  name: string;
  /** A constant, or the value of a param. */
  value?: unknown;
  /** The task whose output it is. */
  from?: { task: string; path: string };
}

export function specOf(definition: Readonly<Record<string, unknown>>, name: string): unknown {
  const tasks = definition["tasks"];
  return Array.isArray(tasks) ? tasks.find((each: unknown) => member(each, "name") === name) : undefined;
}

export function inputsOfSpec(definition: Readonly<Record<string, unknown>>, task: string, params: Readonly<Record<string, unknown>>): Input[] {
  const inputs = member(specOf(definition, task), "inputs");
  if (!Array.isArray(inputs)) return [];
  return inputs.filter((pair: unknown): pair is [string, unknown] => Array.isArray(pair) && typeof pair[0] === "string").map(([name, given]) => inputOf(name, given, params));
}

function inputOf(name: string, given: unknown, params: Readonly<Record<string, unknown>>): Input {
  const ref = member(given, "ref");
  if (!Array.isArray(ref)) return { name, value: readable(given) };
  const [kind, of, ...rest] = ref.map(String);
  if (kind === "params" && of !== undefined) return { name, value: rest.reduce<unknown>((value, key) => member(value, key), Object.hasOwn(params, of) ? params[of] : undefined) };
  if (kind === "tasks" && of !== undefined) return { name, from: { task: of, path: [of, ...rest].join(".") } };
  return { name, value: readable(given) };
}

/** The compiled form in words of a workflow file: `{const: 1}` is `1`, a list of inputs is a map. */
export function readable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [key, inner] = entries[0] ?? [];
  if (entries.length === 1 && key === "const") return inner;
  if (entries.length === 1 && key === "ref" && Array.isArray(inner)) return { ref: inner.map(String).join(".") };
  return Object.fromEntries(entries.map(([name, each]) => [name, name === "inputs" && Array.isArray(each) ? mapOf(each) : readable(each)]));
}

function mapOf(pairs: readonly unknown[]): unknown {
  return Object.fromEntries(pairs.map((pair) => (Array.isArray(pair) ? [String(pair[0]), readable(pair[1])] : [String(pair), null])));
}

/** A value as YAML: short lists and maps in one line, the rest by indentation. */
export function yaml(value: unknown, indent = ""): string {
  if (typeof value !== "object" || value === null) return scalar(value);
  const short = flow(value);
  if (short.length + indent.length <= 72) return short;
  const lines = Array.isArray(value)
    ? value.map((each: unknown) => `${indent}- ${yaml(each, `${indent}  `).trimStart()}`)
    : Object.entries(value).map(([key, each]) => `${indent}${scalar(key)}:${block(each, `${indent}  `)}`);
  return lines.join("\n");
}

function block(value: unknown, indent: string): string {
  const text = yaml(value, indent);
  return text.includes("\n") || text.startsWith(indent) ? `\n${text}` : ` ${text}`;
}

function flow(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (typeof value !== "object" || value === null) return scalar(value);
  return `{${Object.entries(value).map(([key, each]) => `${scalar(key)}: ${flow(each)}`).join(", ")}}`;
}

function scalar(value: unknown): string {
  if (typeof value !== "string") return JSON.stringify(value) ?? "null";
  const isPlain = /^[A-Za-z_./][\w ./@+-]*$/.test(value) && !/\s$/.test(value) && !/^(?:true|false|null|yes|no|on|off)$/i.test(value);
  return isPlain ? value : JSON.stringify(value);
}

function member(value: unknown, key: string): unknown {
  return typeof value === "object" && value !== null && Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
}
