/** The API of `ork serve` as a Source. */

import type { Writes } from "../api.d.ts";
import { type Answer, address, type BodyOf, type Given, type Piece, type ReadOptions, type ReadPath, type Source, type WriteCall } from "./source.ts";
import { disconnected, Problem, problemOf, slow } from "./problem.ts";

export const API = "/api/v1";
export const SESSION_HEADER = "X-Ork-Session";
const ANSWER_SECONDS = 10;

export interface SessionHalf {
  /** The page's half of the session, or null if nobody is signed in. */
  half(): string | null;
  /** Called when the server no longer accepts the session. */
  onSignedOut(): void;
}

interface Request {
  method: string;
  target: string;
  headers?: Record<string, string>;
  body?: unknown;
  options?: ReadOptions;
}

export class HttpSource implements Source {
  readonly canAct = true;
  readonly asOf = null;
  readonly #session: SessionHalf;
  readonly #fetch: typeof fetch;

  constructor(session: SessionHalf, fetcher: typeof fetch = (...given) => fetch(...given)) {
    this.#session = session;
    this.#fetch = fetcher;
  }

  async get<P extends ReadPath>(path: P, given: Given<P>, options?: ReadOptions): Promise<Answer<P>> {
    return this.#withDeadline(options, async (signal) => {
      const response = await this.#send({ method: "GET", target: address(path, given) }, signal);
      return (await response.json()) as Answer<P>;
    });
  }

  async act<C extends WriteCall>(call: C, given: Writes[C]["given"], body?: BodyOf<C>, options?: ReadOptions): Promise<Writes[C]["answer"]> {
    const [method = "POST", path = ""] = call.split(" ");
    return this.#withDeadline(options, async (signal) => {
      const response = await this.#send({ method, target: address(path, given as Record<string, unknown>), body }, signal);
      const text = await response.text();
      return (text ? JSON.parse(text) : null) as Writes[C]["answer"];
    });
  }

  async bytes<P extends ReadPath>(path: P, given: Given<P>, start: number, length?: number, options?: ReadOptions): Promise<Piece> {
    const range = start < 0 ? `bytes=${start}` : `bytes=${start}-${length === undefined ? "" : start + length - 1}`;
    return this.#withDeadline(options, async (signal) => {
      const response = await this.#send({ method: "GET", target: address(path, given), headers: { Range: range } }, signal, [416]);
      const said = contentRange(response.headers.get("Content-Range"));
      if (response.status === 416) return { bytes: new Uint8Array(), start: said?.size ?? 0, size: said?.size ?? 0 };
      const bytes = new Uint8Array(await response.arrayBuffer());
      return { bytes, start: said?.start ?? 0, size: said ? said.size : bytes.length };
    });
  }

  async stream<P extends ReadPath>(path: P, given: Given<P>, headers?: Record<string, string>, signal?: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const response = await this.#send({ method: "GET", target: address(path, given), headers }, signal ?? new AbortController().signal);
    if (!response.body) throw disconnected();
    return response.body;
  }

  async #send(request: Request, signal: AbortSignal, accepted: readonly number[] = []): Promise<Response> {
    const headers: Record<string, string> = { ...request.headers };
    const half = this.#session.half();
    if (half) headers[SESSION_HEADER] = half;
    if (request.body !== undefined) headers["Content-Type"] = "application/json";
    const response = await this.#fetch(API + request.target, {
      method: request.method,
      headers,
      body: request.body === undefined ? null : JSON.stringify(request.body),
      signal,
      credentials: "same-origin",
      redirect: "error",
    });
    if (response.ok || accepted.includes(response.status)) return response;
    if (response.status === 401) this.#session.onSignedOut();
    throw problemOf(response.status, await jsonOf(response), response.headers.get("Retry-After"));
  }

  /** Runs a request until it is answered, aborted by the caller, or too slow. */
  async #withDeadline<T>(options: ReadOptions | undefined, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const seconds = options?.seconds ?? ANSWER_SECONDS;
    const deadline = AbortSignal.timeout(seconds * 1000);
    const signal = options?.signal ? AbortSignal.any([options.signal, deadline]) : deadline;
    try {
      return await work(signal);
    } catch (error) {
      if (error instanceof Problem || options?.signal?.aborted) throw error;
      if (deadline.aborted) throw slow(seconds);
      if (error instanceof TypeError || error instanceof SyntaxError) throw disconnected();
      throw error;
    }
  }
}

/** `bytes 0-99/1000` → start 0, size 1000. */
export function contentRange(text: string | null): { start: number; size: number | null } | null {
  const found = /^bytes (?:(\d+)-\d+|\*)\/(\d+|\*)$/.exec(text ?? "");
  if (!found) return null;
  return { start: Number(found[1] ?? 0), size: found[2] === "*" ? null : Number(found[2]) };
}

async function jsonOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return null;
  }
}
