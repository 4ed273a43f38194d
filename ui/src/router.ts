/** Addresses below `/ui/`. All state of a page is in its address, so that a link shows the same to another person. */

import { computed, signal } from "@preact/signals";
import { snapshotKind } from "./data/documents.ts";

export interface Route {
  /** `runs/:id`; an empty text is the home page. */
  pattern: string;
  page: string;
}

export interface Match {
  page: string;
  params: Readonly<Record<string, string>>;
}

/** Where pages are: below a path of the server, or after `#` of a snapshot, whose one page is a file. */
export interface Base {
  prefix: string;
  isFile: boolean;
}

/** The first route that fits. Segments are decoded; an address that cannot be decoded fits nothing. */
export function match(routes: readonly Route[], path: string): Match | null {
  const given = path.split("/").filter(Boolean);
  for (const route of routes) {
    const wanted = route.pattern.split("/").filter(Boolean);
    if (wanted.length !== given.length) continue;
    const params = matchSegments(wanted, given);
    if (params) return { page: route.page, params };
  }
  return null;
}

function matchSegments(wanted: string[], given: string[]): Record<string, string> | null {
  const params: Record<string, string> = Object.create(null) as Record<string, string>;
  for (const [place, segment] of wanted.entries()) {
    const text = given[place] ?? "";
    if (!segment.startsWith(":")) {
      if (segment !== text) return null;
      continue;
    }
    try {
      params[segment.slice(1)] = decodeURIComponent(text);
    } catch {
      return null;
    }
  }
  return params;
}

/** `path("runs", id, "tasks", name)` → `runs/7f3k/tasks/load`, with every segment encoded. */
export function path(...segments: (string | number)[]): string {
  return segments.map((segment) => encodeURIComponent(String(segment))).join("/");
}

/** The query with some keys changed; null, undefined and "" remove a key. */
export function changedQuery(query: URLSearchParams, changes: QueryChanges): string {
  const next = new URLSearchParams(query);
  for (const [key, value] of Object.entries(changes)) {
    next.delete(key);
    const values = Array.isArray(value) ? value : [value];
    for (const each of values) if (each !== null && each !== undefined && each !== "") next.append(key, String(each));
  }
  const text = next.toString();
  return text ? `?${text}` : "";
}

export type QueryChanges = Record<string, string | number | readonly string[] | null | undefined>;

/** The part of an address below the base, or null if it is elsewhere. */
export function below(base: Base, url: URL): { path: string; search: string } | null {
  if (base.isFile) {
    const [address = ""] = url.hash.replace(/^#\/?/, "").split("#");
    const [path = "", search = ""] = address.split("?");
    return { path, search: search ? `?${search}` : "" };
  }
  if (`${url.pathname}/` === base.prefix) return { path: "", search: url.search };
  if (!url.pathname.startsWith(base.prefix)) return null;
  return { path: url.pathname.slice(base.prefix.length), search: url.search };
}

/** The fragment of a page: in a snapshot what follows a second `#`, `#/runs/7f3k#L212`. */
export function fragment(base: Base, hash: string): string {
  return base.isFile ? hash.slice(1).split("#").slice(1).join("#") : hash.slice(1);
}

export function hrefBelow(base: Base, to: string): string {
  return base.isFile ? `#/${to}` : `${base.prefix}${to}`;
}

export const base: Base =
  snapshotKind !== undefined
    ? { prefix: "", isFile: true }
    : { prefix: "/ui/", isFile: false };

const address = signal(currentAddress());

/** The path below the base, without the query: `runs/7f3k`. */
export const currentPath = computed(() => address.value.path);
export const currentQuery = computed(() => new URLSearchParams(address.value.search));
/** The fragment without `#`: `L212-L219` on the log page. */
export const currentHash = signal(typeof location === "undefined" ? "" : fragment(base, location.hash));

/** An address for `<a href>`: `href("runs/7f3k?view=graph")`. */
export function href(to: string): string {
  return hrefBelow(base, to);
}

/** Shows another page. `replace` does not add a step to the browser's history. */
export function go(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", href(to));
  else history.pushState(null, "", href(to));
  refresh();
  if (!replace) scrollTo(0, 0);
}

/** Changes keys of the query of this page. Filters and sorting replace the address; opening something adds a step. */
export function setQuery(changes: QueryChanges, { push = false } = {}): void {
  const to = `${currentPath.value}${changedQuery(currentQuery.value, changes)}`;
  const hash = currentHash.value && `#${currentHash.value}`;
  if (push) history.pushState(null, "", href(to) + hash);
  else history.replaceState(null, "", href(to) + hash);
  refresh();
}

/** Changes the fragment of this page without a step in the history. */
export function setHash(hash: string): void {
  history.replaceState(null, "", `${href(currentPath.value + address.value.search)}${hash ? `#${hash}` : ""}`);
  refresh();
}

/** The path, query and fragment of the page that is shown. */
export function here(): string {
  return href(currentPath.value + address.value.search) + (currentHash.value && `#${currentHash.value}`);
}

/** The whole address, to be copied. */
export function link(): string {
  return location.href;
}

/** Starts to follow the browser's own navigation and clicks on links of these pages. */
export function startRouter(): void {
  addEventListener("popstate", refresh);
  addEventListener("hashchange", refresh);
  document.addEventListener("click", onClick);
  refresh();
}

function refresh(): void {
  const next = currentAddress();
  currentHash.value = fragment(base, location.hash);
  if (next.path !== address.value.path || next.search !== address.value.search) address.value = next;
}

function currentAddress(): { path: string; search: string } {
  if (typeof location === "undefined") return { path: "", search: "" };
  return below(base, new URL(location.href)) ?? { path: "", search: "" };
}

function onClick(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const anchor = (event.target as Element | null)?.closest?.("a[href]") as HTMLAnchorElement | null;
  if (!anchor || anchor.target || anchor.hasAttribute("download")) return;
  const url = new URL(anchor.href);
  if (url.origin !== location.origin || (base.isFile && (url.pathname !== location.pathname || !url.hash.startsWith("#/")))) return;
  const inside = below(base, url);
  if (!inside || inside.path.startsWith("assets/")) return;
  event.preventDefault();
  history.pushState(null, "", url.href);
  refresh();
  if (!fragment(base, url.hash)) scrollTo(0, 0);
}
