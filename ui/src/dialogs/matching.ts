/** Which of the palette's items fit a text. */

export interface Findable {
  group: string;
  label: string;
  /** Further words that find it. */
  words?: string | undefined;
  /** Not shown before something is typed. */
  isOnlyFound?: boolean;
}

const MOST_FOUND = 12;
const MOST_UNASKED = 4;
/** Names are rarer than runs: with a text, they come first. */
const TYPED_ORDER = ["Tasks", "Workflows", "Pages", "Actions", "Runs", "Error codes"];
const SHORT_GROUPS = new Set(["Pages", "Actions"]);

/** Items that have all the words of the text, those that begin with it first, at most a few of each group. */
export function pick<T extends Findable>(items: readonly T[], text: string): T[] {
  const words = text.split(/\s+/).filter(Boolean);
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const own = `${item.group} ${item.label} ${item.words ?? ""}`.toLowerCase();
    if (text === "" ? item.isOnlyFound : !words.every((word) => own.includes(word))) continue;
    groups.set(item.group, [...(groups.get(item.group) ?? []), item]);
  }
  const rank = (item: T): number => (text !== "" && item.label.toLowerCase().startsWith(text) ? 0 : 1);
  const best = (group: T[]): number => Math.min(...group.map(rank));
  const order = (group: T[]): number => TYPED_ORDER.findIndex((name) => group[0]?.group.startsWith(name));
  const sorted = text === "" ? [...groups.values()] : [...groups.values()].sort((a, b) => best(a) - best(b) || order(a) - order(b));
  return sorted.flatMap((group) => group.sort((a, b) => rank(a) - rank(b)).slice(0, text !== "" || SHORT_GROUPS.has(group[0]?.group ?? "") ? MOST_FOUND : MOST_UNASKED));
}

export interface Target {
  kind: "run" | "workflow";
  name: string;
}

/** Whose tasks are asked for: `my_etl/load` and `7f3k/load` name it; else it is what the current page is about. */
export function splitTarget(text: string, page: string, workflows: readonly string[]): Target | null {
  const [, before] = /^([^\s/]+)\//.exec(text) ?? [];
  if (before !== undefined) {
    if (workflows.includes(before)) return { kind: "workflow", name: before };
    return /^(@last|[0-9a-z]{4,12})$/.test(before) ? { kind: "run", name: before } : null;
  }
  const [kind, name] = page.split("/");
  if (!name || (kind !== "runs" && kind !== "workflows")) return null;
  return { kind: kind === "runs" ? "run" : "workflow", name: decodeURIComponent(name) };
}
