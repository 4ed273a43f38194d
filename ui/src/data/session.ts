/** Who is signed in. The session has two halves: a cookie that pages cannot read, and a header value that they keep.
 * Pages of a snapshot have no session; their user is a viewer. */

import { batch, computed, signal } from "@preact/signals";
import type { SingleSignOn } from "../api.d.ts";
import { API, HttpSource, SESSION_HEADER } from "./http.ts";
import { asProblem, disconnected, Problem, problemOf } from "./problem.ts";
import { openDocuments, snapshotKind } from "./documents.ts";
import type { Source } from "./source.ts";
import { keep, kept } from "./storage.ts";
import { setServerTime, stopClockAt } from "../clock.ts";
import { currentPath, go } from "../router.ts";

export type Role = "viewer" | "operator" | "admin" | "scheduler";

/** The response of `GET /session`. */
export interface Session {
  name: string;
  role: Role;
  /** When the session ends; null if it does not. */
  until: string | null;
  /** The server's version of Ork. */
  version: string;
  /** The server's time. */
  time: string;
  /** The operation ids of the OpenAPI document that the role allows. */
  may: readonly string[];
  /** The name of the installation, if it has one. */
  installation?: string;
}

// The names that the server and these pages agree on.
const ROUTE = `${API}/session`;
const TICKET_KEY = "ticket";
const THEN_KEY = "then";
const TICKET_FIELD = "ticket";
const TOKEN_FIELD = "token";
const HALF_FIELD = "half";
const HALF_KEY = "half";

const RANKS: Record<string, number> = { viewer: 1, operator: 2, admin: 3 };

/** Undefined until the first answer; null if nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined);
/** Why there is no answer about the session. */
export const sessionProblem = signal<Problem | null>(null);
/** The server no longer accepts the session that this page was opened with. */
export const isSignedOut = signal(false);
/** A snapshot of one run: what its page does not lead to is not there. */
export const isOneRun = signal(false);
/** The server's version is not the one that this page came from. */
export const isOutdated = signal(false);

/** The server; a snapshot, once `startSession` has opened it. */
export let source: Source = new HttpSource({
  half: () => kept(HALF_KEY),
  onSignedOut: () => {
    isSignedOut.value = true;
  },
});

/** Whether the caller's role includes another. */
export function may(role: Role): boolean {
  return (RANKS[session.value?.role ?? ""] ?? 0) >= (RANKS[role] ?? 99);
}

export const installation = computed(() => session.value?.installation ?? (typeof location === "undefined" ? "" : location.host));

/** Takes a ticket from the address, if there is one, and asks who is signed in. */
export async function startSession(): Promise<void> {
  if (snapshotKind) return startSnapshot();
  const ticket = takeTicket();
  try {
    if (ticket) await exchange({ [TICKET_FIELD]: ticket });
    else await refreshSession();
  } catch (error) {
    const problem = asProblem(error);
    sessionProblem.value = problem;
    if (ticket || problem.kind === "signed out") session.value = null;
  }
  addEventListener("storage", (event) => {
    if (event.key === `ork.${HALF_KEY}`) void refreshSession().catch(() => undefined);
  });
}

/** Reads from the snapshot that these pages were exported with. Its clock stands still. */
async function startSnapshot(): Promise<void> {
  try {
    const { openSnapshot } = await import("./snapshot.ts");
    const opened = await openSnapshot(await openDocuments());
    const { version, as_of, installation, start } = opened.manifest;
    source = opened;
    stopClockAt(as_of);
    isOneRun.value = Boolean(start);
    if (start && currentPath.value === "") go(start, { replace: true });
    session.value = { name: "snapshot", role: "viewer", until: null, version, time: as_of, may: [], installation: installation ?? "" };
  } catch (error) {
    sessionProblem.value = asProblem(error);
  }
}

/** Signs in with a token, which is sent once and not kept. */
export async function signIn(token: string): Promise<void> {
  await exchange({ [TOKEN_FIELD]: token });
}

export async function signOut(): Promise<void> {
  await call("DELETE");
  keep(HALF_KEY, null);
  batch(() => {
    session.value = null;
    isSignedOut.value = false;
  });
}

/** Asks the server who is signed in, and notices another version of the server. */
export async function refreshSession(): Promise<void> {
  if (kept(HALF_KEY) === null) {
    session.value = null;
    return;
  }
  accept((await call("GET")) as Session);
}

async function exchange(body: Record<string, string>): Promise<void> {
  const answer = (await call("POST", body)) as Record<string, unknown>;
  const half = answer[HALF_FIELD];
  if (typeof half !== "string") throw new Problem("failed", "Signing in failed", "The server's answer has no session.");
  keep(HALF_KEY, half);
  accept((await call("GET")) as Session);
}

function accept(found: Session): void {
  setServerTime(found.time);
  const ours = pageVersion() ?? session.value?.version;
  batch(() => {
    isOutdated.value = ours !== undefined && ours !== found.version;
    session.value = found;
    sessionProblem.value = null;
    isSignedOut.value = false;
  });
}

async function call(method: string, body?: Record<string, string>): Promise<unknown> {
  const half = kept(HALF_KEY);
  let response: Response;
  try {
    response = await fetch(ROUTE, {
      method,
      headers: {
        ...(half && method !== "POST" ? { [SESSION_HEADER]: half } : {}),
        ...(body ? { "Content-Type": "application/json" } : {}),
      },
      body: body ? JSON.stringify(body) : null,
      credentials: "same-origin",
      redirect: "error",
      signal: AbortSignal.timeout(10_000),
    });
  } catch {
    throw disconnected();
  }
  const text = await response.text();
  const answer = parsed(text);
  if (!response.ok) throw problemOf(response.status, answer, response.headers.get("Retry-After"));
  return answer;
}

/** The version of the server when it sent this page, which it writes into the page's head. */
function pageVersion(): string | undefined {
  return document.querySelector<HTMLMetaElement>('meta[name="ork-version"]')?.content || undefined;
}

/** The ticket of `#ticket=…`, which is removed from the address and the history at once. `then` is what stood behind `#`
 * before a single sign-on. */
function takeTicket(): string | null {
  const given = new URLSearchParams(location.hash.slice(1));
  const [found, then] = [given.get(TICKET_KEY), given.get(THEN_KEY)];
  if (found) history.replaceState(null, "", location.pathname + location.search + (then ? `#${then}` : ""));
  return found;
}

/** The provider that people can sign in with; null if they sign in with tokens only, or the server does not say. */
export async function singleSignOn(): Promise<SingleSignOn | null> {
  try {
    return (await source.get("/sign-in", {})).single_sign_on;
  } catch {
    return null;
  }
}

function parsed(text: string): unknown {
  try {
    return text ? JSON.parse(text) : null;
  } catch {
    return null;
  }
}
