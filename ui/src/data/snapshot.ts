/** A snapshot as a Source: the same answers as the API's, from documents that `ork ui export` has written. */

import type { Attempt, AttemptPage, Calendar, ListedRun, Overview, RunPage, SchedulePage, Task, TaskPage, Writes } from "../api.d.ts";
import type { Documents } from "./documents.ts";
import { indexLines, searchLog } from "./log-text.ts";
import { Problem } from "./problem.ts";
import type { Answer, Given, Piece, ReadOptions, ReadPath, Source, WriteCall } from "./source.ts";

export interface Manifest {
  format: number;
  as_of: string;
  /** The version of Ork that has written it. */
  version: string;
  installation: string | null;
  /** The page to begin with, if it is not the home page. */
  start: string | null;
  /** The newest runs, as many as were asked for; false: these are all. */
  more_runs: boolean;
  /** Of each run that is in the snapshot, what its row was when it was read. */
  runs: Record<string, string>;
  /** The name of each document and its digest. */
  documents: Record<string, string>;
}

type Query = Readonly<Record<string, unknown>>;
type Answers = Record<string, unknown>;

const FORMAT = 1;
const LOG = "/runs/{run}/tasks/{name}/{index}/attempts/{number}/log";
const DIFFERENCE = "/runs/{run}/diff/{other}";
const HITS_OF_EACH = 3;
/** Parameters that only choose a part of an answer. The whole is in the snapshot, and it is cut here. */
const CUTTING = new Set(["limit", "cursor", "since", "next", "runs", "preview", "from", "to", "counts", "follow"]);

/** Reads the manifest. A Problem if another version of Ork has written the snapshot. */
export async function openSnapshot(documents: Documents): Promise<SnapshotSource> {
  const manifest = json(await documents.read("manifest.json")) as Manifest;
  if (manifest.format === 0) throw new Problem("busy", "This snapshot is not complete", "It is being written for the first time, or that was interrupted.", "Wait for `ork ui export`, or repeat it.");
  if (manifest.format !== FORMAT) throw new Problem("failed", "This snapshot has another format", `It was written by Ork ${manifest.version}.`, "Export it again with `ork ui export`.");
  return new SnapshotSource(documents, manifest);
}

export class SnapshotSource implements Source {
  readonly canAct = false;
  readonly asOf: string;
  readonly manifest: Manifest;
  readonly #documents: Documents;
  readonly #parsed = new Map<string, Promise<unknown>>();

  constructor(documents: Documents, manifest: Manifest) {
    this.#documents = documents;
    this.manifest = manifest;
    this.asOf = manifest.as_of;
  }

  async get<P extends ReadPath>(path: P, given: Given<P>, options?: ReadOptions): Promise<Answer<P>> {
    const answer = await this.#answer(path, given as Query);
    options?.signal?.throwIfAborted();
    return answer as Answer<P>;
  }

  act<C extends WriteCall>(_call: C): Promise<Writes[C]["answer"]> {
    return Promise.reject(new Problem("refused", "This is a snapshot", "It can only be read.", "Open the pages of the server: `ork ui`."));
  }

  async bytes<P extends ReadPath>(path: P, given: Given<P>, start: number, length?: number): Promise<Piece> {
    const whole = await this.#log(path, given as Query);
    const first = start < 0 ? Math.max(0, whole.length + start) : Math.min(start, whole.length);
    const end = length === undefined ? whole.length : Math.min(whole.length, first + length);
    return { bytes: whole.slice(first, end), start: first, size: whole.length };
  }

  async stream<P extends ReadPath>(path: P, given: Given<P>): Promise<ReadableStream<Uint8Array>> {
    const query = given as Query;
    // A log that is followed has ended: it does not grow any more here.
    const body = query["follow"] ? new TextEncoder().encode("event: end\ndata: {}\n\n") : (await this.#log(path, query)).slice();
    return new ReadableStream({
      start(controller) {
        controller.enqueue(body);
        controller.close();
      },
    });
  }

  async #answer(path: string, given: Query): Promise<unknown> {
    if (path === "/runs") return this.#runs(given);
    if (path === "/run-ids") return { ids: this.#ids(text(given["prefix"])).slice(0, number(given["limit"], 10)) };
    if (path === `${LOG}/lines`) return indexLines(await this.#log(LOG, given), number(given["every"], 1000));
    if (path === `${LOG}/search`) return searchLog(await this.#log(LOG, given), text(given["q"]), given["ignore_case"] === true, number(given["limit"], 500));
    if (path === "/runs/{run}/logs/search") return this.#searchLogs(given);
    if (path === DIFFERENCE) return this.#difference(text(given["run"]), text(given["other"]));
    const { document, rest } = this.#place(path, given);
    const answers = (await this.#read(document, path)) as Answers;
    const answer = answers[keyOf(path, rest)];
    if (answer === undefined || answer === null) throw this.#missing(what(path, rest));
    return cut(path, answer, given);
  }

  /** The document that has the answer, and the parameters that are not in its name. */
  #place(path: string, given: Query): { document: string; rest: Query } {
    const { run, name, version, ...others } = given;
    if (path.startsWith("/runs/{run}")) return { document: `run/${this.#id(text(run))}.json`, rest: { name, ...others } };
    if (path.startsWith("/workflows/{name}")) return { document: `workflow/${text(name)}.json`, rest: others };
    if (path.startsWith("/versions/{version}")) return { document: `version/${text(version)}.json`, rest: others };
    return { document: "overview.json", rest: given };
  }

  #read(document: string, path: string): Promise<unknown> {
    if (!Object.hasOwn(this.manifest.documents, document)) throw this.#missing(what(path, {}));
    const known = this.#parsed.get(document);
    if (known) return known;
    const read = this.#documents.read(document).then(json);
    this.#parsed.set(document, read);
    read.catch(() => this.#parsed.delete(document));
    return read;
  }

  /** The whole id of a run that is named by its first characters. */
  #id(given: string): string {
    if (Object.hasOwn(this.manifest.runs, given)) return given;
    const [only, ...others] = this.#ids(given);
    if (only === undefined || others.length) throw this.#missing(`Run ${given}`);
    return only;
  }

  #ids(prefix: string): string[] {
    return prefix === "" ? [] : Object.keys(this.manifest.runs).filter((id) => id.startsWith(prefix));
  }

  async #runs(given: Query): Promise<RunPage> {
    if (given["param"]) throw this.#missing("Searching by params");
    const months = Object.keys(this.manifest.documents).filter((name) => /^runs\/[\d-]+\.json$/.test(name)).sort().reverse();
    const pages = await Promise.all(months.map((name) => this.#read(name, "/runs") as Promise<{ runs: ListedRun[] }>));
    const wanted = pages.flatMap((page) => page.runs).filter(matching(given));
    if (given["sort"]) wanted.sort(byDuration(given["sort"] === "-duration"));
    const first = number(given["cursor"], 0);
    const end = first + number(given["limit"], 20);
    const isMore = end < wanted.length;
    return { runs: wanted.slice(first, end), cursor: isMore ? String(end) : null, count: wanted.length, count_is_exact: !this.manifest.more_runs, partial: this.manifest.more_runs && !isMore };
  }

  async #log(path: string, given: Query): Promise<Uint8Array> {
    const name = logName(this.#id(text(given["run"])), text(given["name"]), number(given["index"], 0), number(given["number"], 1));
    if (path !== LOG || !Object.hasOwn(this.manifest.documents, name)) throw this.#missing(path === LOG ? "This log" : "This");
    return this.#documents.read(name);
  }

  async #searchLogs(given: Query): Promise<unknown> {
    const run = this.#id(text(given["run"]));
    const { attempts } = ((await this.#read(`run/${run}.json`, "/runs/{run}/logs/search")) as Answers)["/runs/{run}/attempts"] as AttemptPage;
    const there = attempts.filter((each) => (!given["task"] || each.task === given["task"]) && Object.hasOwn(this.manifest.documents, logOf(run, each)));
    if (there.length === 0) throw this.#missing("The logs of this run");
    const logs = [];
    for (const each of there) {
      const found = searchLog(await this.#documents.read(logOf(run, each)), text(given["q"]), given["ignore_case"] === true, HITS_OF_EACH);
      if (found.total) logs.push({ task: each.task, index: each.index, attempt: each.attempt, ...found });
    }
    return { logs, searched: there.length, total: logs.reduce((sum, each) => sum + each.total, 0), cursor: null };
  }

  /** Both directions are in the document of the later run. */
  async #difference(run: string, other: string): Promise<unknown> {
    const [a, b] = [this.#id(run), this.#id(other)];
    const [own, theirs] = await Promise.all([a, b].map((id) => this.#read(`run/${id}.json`, DIFFERENCE) as Promise<Answers>));
    const found = own?.[`${DIFFERENCE} other=${b}`] ?? theirs?.[`${DIFFERENCE} from=${a}`];
    if (!found) throw this.#missing("This comparison");
    return found;
  }

  #missing(subject: string): Problem {
    return new Problem("refused", "Not in this snapshot", `${subject} is not in this snapshot.`, "`ork ui export` takes more runs with `--runs` and `--since`, and logs with `--logs`.");
  }
}

/** The template of the path with those parameters that do not only cut: `/runs/{run}/why task=load[3]`. */
export function keyOf(path: string, rest: Query): string {
  if (path === "/runs/{run}/tasks" || path === "/runs/{run}/attempts" || path === "/calendar") return path;
  const parts = Object.entries(rest)
    .filter(([name, value]) => value !== undefined && value !== null && !CUTTING.has(name))
    .map(([name, value]) => `${name}=${String(value)}`);
  return [path, ...parts.sort()].join(" ");
}

function cut(path: string, answer: unknown, given: Query): unknown {
  if (path === "/overview") return sinceThen(answer as Overview, given["since"]);
  if (path === "/calendar") return inRange(answer as Calendar, given);
  if (path === "/schedules") return withTimes(answer as SchedulePage, number(given["next"], 1));
  if (path === "/workflows/{name}/grid") return { ...(answer as { runs: unknown[] }), runs: (answer as { runs: unknown[] }).runs.slice(0, number(given["runs"], 1000)) };
  if (path === "/runs/{run}/tasks") return pageOfTasks(answer as TaskPage, given);
  if (path === "/runs/{run}/attempts") return pageOfAttempts(answer as AttemptPage, given);
  return answer;
}

function sinceThen(overview: Overview, since: unknown): Overview {
  if (typeof since !== "string" || since <= overview.since) return overview;
  return { ...overview, since, failures: overview.failures.filter((run) => Date.parse(run.created_at) >= Date.parse(since)) };
}

/** `partial` where the snapshot ends before the wanted range. */
function inRange(calendar: Calendar, given: Query): Calendar {
  const [from, to] = [Date.parse(text(given["from"])), Date.parse(text(given["to"]))];
  const partial = calendar.partial || from < Date.parse(calendar.from) || to > Date.parse(calendar.to);
  const workflows = calendar.workflows
    .filter((each) => !given["workflow"] || each.workflow === given["workflow"])
    .map((each) => ({ ...each, partial: each.partial || partial, times: each.times.filter(({ time }) => from <= Date.parse(time) && Date.parse(time) < to) }));
  return { ...calendar, from: text(given["from"]), to: text(given["to"]), workflows, partial };
}

function withTimes(page: SchedulePage, next: number): SchedulePage {
  return { ...page, schedules: page.schedules.map((each) => ({ ...each, next: each.next.slice(0, next) })) };
}

/** As the API pages: the cursor is the last row's name, `load[3]`. */
function pageOfTasks(page: TaskPage, given: Query): TaskPage {
  const statuses = given["status"] as string[] | undefined;
  const order = new Map(page.tasks.map((row, place) => [row.name, place] as const).reverse());
  const after = afterCursor(given["cursor"], order);
  const limit = number(given["limit"], 1000);
  const rows = page.tasks.filter((row) => (!given["name"] || row.name === given["name"]) && (!statuses?.length || statuses.includes(row.status)) && after(row));
  const last = rows[limit - 1];
  return { ...page, tasks: rows.slice(0, limit), cursor: rows.length > limit && last ? taskKey(last) : null };
}

function afterCursor(cursor: unknown, order: ReadonlyMap<string, number>): (row: Task) => boolean {
  if (typeof cursor !== "string") return () => true;
  const [, name = cursor, index = ""] = /^(.*?)(?:\[(\d+)\])?$/.exec(cursor) ?? [];
  const [place, least] = [order.get(name) ?? -1, index === "" ? -1 : Number(index)];
  return (row) => (row.name === name ? (row.index ?? -1) > least : (order.get(row.name) ?? 0) > place);
}

function pageOfAttempts(page: AttemptPage, given: Query): AttemptPage {
  const { task, index } = given;
  const isOurs = (each: Attempt): boolean => !task || (each.task === task && (each.index === (index ?? null) || (each.index === null && index === 0)));
  return { ...page, attempts: page.attempts.filter(isOurs) };
}

function matching(given: Query): (run: ListedRun) => boolean {
  const statuses = given["status"] as string[] | undefined;
  const [after, before] = [Date.parse(text(given["created_after"])), Date.parse(text(given["created_before"]))];
  const times = (given["scheduled_for"] as string[] | undefined)?.map((time) => Date.parse(time));
  const q = text(given["q"]).toLowerCase();
  return (run) => {
    const created = Date.parse(run.created_at);
    if (given["workflow"] && run.workflow !== given["workflow"]) return false;
    if (statuses?.length && !statuses.includes(run.status)) return false;
    if (given["trigger"] && run.trigger !== given["trigger"]) return false;
    if (created < after || created >= before) return false;
    if (times && !times.includes(Date.parse(run.scheduled_for ?? ""))) return false;
    return q === "" || run.workflow.toLowerCase().includes(q) || (q.length >= 4 && run.id.includes(q));
  };
}

function byDuration(isLongestFirst: boolean): (a: ListedRun, b: ListedRun) => number {
  const milliseconds = (run: ListedRun): number => (run.started_at && run.finished_at ? Date.parse(run.finished_at) - Date.parse(run.started_at) : -1);
  return (a, b) => (isLongestFirst ? milliseconds(b) - milliseconds(a) : milliseconds(a) - milliseconds(b));
}

/** What is missing, in words, for a message. */
function what(path: string, rest: Query): string {
  if (path.endsWith("/output")) return "This output";
  if (path.startsWith("/runs/{run}")) return rest["task"] ? `Task ${String(rest["task"])}` : "This part of the run";
  if (path.startsWith("/workflows/{name}")) return "This part of the workflow";
  return "This";
}

export function logName(run: string, task: string, index: number, attempt: number): string {
  return `log/${run}/${task}.${index}.${attempt}.txt`;
}

const logOf = (run: string, each: Attempt): string => logName(run, each.task, each.index ?? 0, each.attempt);
const taskKey = (row: Task): string => (row.index === null ? row.name : `${row.name}[${row.index}]`);
const json = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes));
const text = (value: unknown): string => (typeof value === "string" ? value : "");

function number(value: unknown, otherwise: number): number {
  return value === undefined || value === null || value === "" ? otherwise : Number(value);
}

