/** Errors of the API and of the connection, as one type. */

import type { ProblemDetails } from "../api.d.ts";

export type ProblemKind = "signed out" | "forbidden" | "gone" | "disconnected" | "slow" | "busy" | "refused" | "failed";

export class Problem extends Error {
  constructor(
    readonly kind: ProblemKind,
    readonly title: string,
    readonly detail: string,
    readonly hint: string | null = null,
    readonly code: string | null = null,
    readonly status: number | null = null,
    /** Seconds after which the server wants to be asked again. */
    readonly retryAfter: number | null = null,
    /** Further fields of the response: the current run of a 409, the errors of a definition of a 422. */
    readonly more: Readonly<Record<string, unknown>> = {},
  ) {
    super(detail || title);
    this.name = "Problem";
  }

  /** Asking again later may help. */
  get isPassing(): boolean {
    return this.kind === "disconnected" || this.kind === "slow" || this.kind === "busy";
  }
}

export const disconnected = (): Problem =>
  new Problem("disconnected", "The server does not answer", "The connection could not be made or was cut.", "Is `ork serve` running?");

export const slow = (seconds: number): Problem =>
  new Problem("slow", "No answer yet", `The server has not answered for ${seconds} seconds.`, "Try again, or look at the server's log.");

/** From a response that is not a success. A body that is no problem document gives the status alone. */
export function problemOf(status: number, body: unknown, retryAfter: string | null): Problem {
  const given: Partial<ProblemDetails> = isRecord(body) ? body : {};
  const { title, detail, hint, code, status: _status, type: _type, ...more } = given as Record<string, unknown>;
  const seconds = retryAfter !== null && /^\d+$/.test(retryAfter) ? Number(retryAfter) : null;
  return new Problem(
    kindOf(status),
    text(title) ?? TITLES[status] ?? `The server answered ${status}`,
    text(detail) ?? "",
    text(hint),
    text(code),
    status,
    seconds,
    more,
  );
}

/** Any thrown value as a Problem; an aborted request stays what it is. */
export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  return new Problem("failed", "This page has an error", error instanceof Error ? error.message : String(error));
}

export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

const TITLES: Record<number, string> = {
  401: "You are signed out",
  403: "Your role does not allow this",
  404: "There is nothing here",
  409: "The state has changed meanwhile",
  429: "Too many requests",
  500: "The server has an error",
  503: "The store is unavailable",
};

function kindOf(status: number): ProblemKind {
  if (status === 401) return "signed out";
  if (status === 403) return "forbidden";
  if (status === 404 || status === 410) return "gone";
  if (status === 429 || status === 502 || status === 503 || status === 504) return "busy";
  return status >= 500 ? "failed" : "refused";
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}
