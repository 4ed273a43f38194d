/** A workflow's definition as the API shows it: its tasks in layers, and what changed between two versions. */

export interface TaskDefinition {
  name: string;
  executor: string;
  dependsOn: string[];
  isFanOut: boolean;
  /** What it does in a few words: `tasks.py: load`, `sh -c …`, `approval`. */
  does: string;
  /** Everything else that is set: retries, timeout, pool … */
  options: [name: string, value: string][];
}

/** The tasks of `definition` of `GET /workflows/{name}` or `GET /versions/{id}`. */
export function tasksOf(definition: Readonly<Record<string, unknown>> | null | undefined): TaskDefinition[] {
  const tasks = definition?.["tasks"];
  return Array.isArray(tasks) ? tasks.filter(isRecord).map(taskOf) : [];
}

const OWN = new Set(["name", "executor", "action", "depends_on", "foreach", "inputs"]);

function taskOf(task: Record<string, unknown>): TaskDefinition {
  return {
    name: String(task["name"] ?? ""),
    executor: String(task["executor"] ?? ""),
    dependsOn: Array.isArray(task["depends_on"]) ? task["depends_on"].map(String) : [],
    isFanOut: task["foreach"] != null,
    does: actionInWords(task["action"]),
    options: Object.entries(task).filter(([key]) => !OWN.has(key)).map(([key, value]) => [key, valueInWords(value)]),
  };
}

function actionInWords(action: unknown): string {
  if (!isRecord(action)) return "";
  const [kind = "", given] = Object.entries(action)[0] ?? [];
  if (kind === "python" && isRecord(given)) return [given["file"] ?? given["module"], given["function"]].filter(Boolean).map(String).join(": ");
  if (kind === "command" && Array.isArray(given)) return given.map(valueInWords).join(" ");
  if (kind === "approval" && isRecord(given)) return `approval: ${String(given["message"] ?? "")}`;
  return isRecord(given) ? `${kind}: ${valueInWords(Object.values(given)[0])}` : kind;
}

/** `{"const": "sh"}` → sh, `{"ref": ["params", "day"]}` → params.day, other values as JSON. */
export function valueInWords(value: unknown): string {
  if (isRecord(value)) {
    if (Object.keys(value).length === 1 && "const" in value) return valueInWords(value["const"]);
    if (Object.keys(value).length === 1 && Array.isArray(value["ref"])) return value["ref"].join(".");
  }
  return typeof value === "string" ? value : (JSON.stringify(value) ?? "nothing");
}

/** The layer of each task: 0 without upstream tasks, else one more than the last of them. A cycle ends at the task that closes it. */
export function layersOf(tasks: readonly Pick<TaskDefinition, "name" | "dependsOn">[]): Map<string, number> {
  const known = new Map(tasks.map((task) => [task.name, task.dependsOn]));
  const below = new Map<string, string[]>();
  const waits = new Map<string, number>();
  for (const [name, upstream] of known) {
    const real = upstream.filter((each) => known.has(each));
    waits.set(name, real.length);
    for (const each of real) below.set(each, [...(below.get(each) ?? []), name]);
  }
  const layers = new Map<string, number>();
  let layer = [...known.keys()].filter((name) => waits.get(name) === 0);
  for (let depth = 0; layer.length > 0; depth++) {
    const next: string[] = [];
    for (const name of layer) {
      layers.set(name, depth);
      for (const each of below.get(name) ?? []) {
        const left = (waits.get(each) ?? 0) - 1;
        waits.set(each, left);
        if (left === 0) next.push(each);
      }
    }
    layer = next;
  }
  return layers;
}

export interface DefinitionChange {
  /** `load.retries`, `params.day.default`, `schedule.cron`. */
  path: string;
  /** Null: it was not there. */
  before: string | null;
  /** Null: it is gone. */
  after: string | null;
}

/** What differs, in the order of the older definition. Tasks and params are compared by name, not by place. */
export function changesBetween(before: unknown, after: unknown): DefinitionChange[] {
  const found: DefinitionChange[] = [];
  compare("", before, after, found);
  return found;
}

/** `load.retries 2 → 3`. */
export function changeText(change: DefinitionChange): string {
  if (change.before === null) return `${change.path} added`;
  if (change.after === null) return `${change.path} removed`;
  return `${change.path} ${short(change.before)} → ${short(change.after)}`;
}

function compare(path: string, before: unknown, after: unknown, found: DefinitionChange[]): void {
  if (JSON.stringify(before) === JSON.stringify(after)) return;
  const [old, next] = [membersOf(before), membersOf(after)];
  if (old && next) {
    for (const key of new Set([...old.keys(), ...next.keys()])) {
      compare(joined(path, key), old.get(key), next.get(key), found);
    }
    return;
  }
  found.push({ path, before: before === undefined ? null : valueInWords(before), after: after === undefined ? null : valueInWords(after) });
}

/** The members of an object, or of a list whose items have names; null for anything else. */
function membersOf(value: unknown): Map<string, unknown> | null {
  if (isReference(value)) return null;
  if (isRecord(value)) return new Map(Object.entries(value));
  if (!Array.isArray(value) || value.length === 0) return null;
  if (value.every((each) => isRecord(each) && typeof each["name"] === "string")) return new Map(value.map((each: Record<string, unknown>) => [String(each["name"]), each]));
  if (value.every((each) => Array.isArray(each) && each.length === 2 && typeof each[0] === "string")) return new Map(value as [string, unknown][]);
  return null;
}

function isReference(value: unknown): boolean {
  return isRecord(value) && Object.keys(value).length === 1 && ("const" in value || "ref" in value);
}

/** Tasks are named without `tasks.` before them, as people do. */
function joined(path: string, key: string): string {
  return path === "" || path === "tasks" ? key : `${path}.${key}`;
}

function short(text: string): string {
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
