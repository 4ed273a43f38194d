/** Changes of runs, as they happen. One stream for the whole browser, held by a visible tab.
 *
 * Six streams would block the server's whole address under HTTP/1.1, so tabs elect one of them by a Web Lock, and it
 * passes on what it hears. A hidden tab gives the lock up. The stream is closed after a minute of silence in which
 * nothing runs; a click, a key or a visible tab opens it again, after the last mark, without gaps.
 */

import { signal } from "@preact/signals";
import type { RunEvent } from "../api.d.ts";
import { pauseBefore } from "./backoff.ts";
import { isAbort, Problem } from "./problem.ts";
import type { Source } from "./source.ts";
import { EventParser, type ServerEvent } from "./sse.ts";

export type StreamState = "off" | "opening" | "live" | "quiet" | "lost" | "polling";

/** `run`: this run changed. `reset`: anything may have changed. */
export type Change = { kind: "run"; event: RunEvent } | { kind: "reset" };
type Listener = (change: Change) => void;
type Message = { kind: "change"; change: Change; mark: string | null } | { kind: "state"; state: StreamState } | { kind: "wake" } | { kind: "ask" };

const LOCK = "ork-events";
const CHANNEL = "ork-events";
const SILENCE_SECONDS = 60;
const POLL_SECONDS = 15;
const OPEN_SECONDS = 3;

export const streamState = signal<StreamState>("off");
/** The time of the last event or sign of life, in milliseconds. */
export const lastHeard = signal<number | null>(null);

const listeners = new Set<Listener>();

/** Calls the listener for each change, until the returned function is called. */
export function onChange(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Opens a quiet stream again, for example after an action. */
export function wakeStream(): void {
  stream?.wake(true);
}

let stream: LiveStream | null = null;

export function startStream(source: Source): () => void {
  stream?.close();
  stream = new LiveStream(source);
  const started = stream;
  return () => started.close();
}

class LiveStream {
  readonly #source: Source;
  readonly #channel: BroadcastChannel | null = typeof BroadcastChannel === "undefined" ? null : new BroadcastChannel(CHANNEL);
  readonly #closed = new AbortController();
  #turn: AbortController | null = null;
  #mark: string | null = null;
  #awake: (() => void) | null = null;
  #isHolder = false;

  constructor(source: Source) {
    this.#source = source;
    this.#channel?.addEventListener("message", (event: MessageEvent<Message>) => this.#onMessage(event.data));
    const { signal } = this.#closed;
    const follow = (): void => this.#follow();
    document.addEventListener("visibilitychange", follow, { signal });
    addEventListener("focus", follow, { signal });
    addEventListener("blur", follow, { signal });
    addEventListener("pointerdown", () => this.wake(true), { signal, passive: true });
    addEventListener("keydown", () => this.wake(true), { signal, passive: true });
    // The tab that holds the stream may have nothing to say for a long time.
    this.#post({ kind: "ask" });
    this.#follow();
  }

  close(): void {
    this.#closed.abort();
    this.#turn?.abort();
    this.#channel?.close();
    streamState.value = "off";
  }

  /** Opens the stream again if it was closed for silence. Other tabs are asked too, one of which may hold it. */
  wake(isOwn: boolean): void {
    if (this.#awake) this.#awake();
    else if (isOwn && streamState.value === "quiet") this.#post({ kind: "wake" });
  }

  /** Takes part in the election while the tab can be seen. Without locks, the focused tab has its own stream. */
  #follow(): void {
    const hasLocks = "locks" in navigator && navigator.locks !== undefined;
    const isWanted = !document.hidden && (hasLocks || document.hasFocus());
    if (!isWanted) {
      this.#turn?.abort();
      this.#turn = null;
      if (!hasLocks) streamState.value = "off";
      return;
    }
    this.wake(true);
    if (this.#turn) return;
    const turn = new AbortController();
    this.#turn = turn;
    const work = (): Promise<void> => this.#hold(turn.signal, hasLocks);
    const done = hasLocks ? navigator.locks.request(LOCK, { signal: turn.signal }, work) : work();
    void Promise.resolve(done).catch(() => undefined);
  }

  /** Keeps a stream open until the turn ends. */
  async #hold(turn: AbortSignal, hasLocks: boolean): Promise<void> {
    let tries = 0;
    this.#isHolder = true;
    turn.addEventListener("abort", () => { this.#isHolder = false; }, { once: true });
    while (!turn.aborted) {
      try {
        const isQuiet = await this.#read(turn, hasLocks, () => {
          tries = 0;
        });
        if (isQuiet) await this.#sleepUntilWoken(turn);
      } catch (error) {
        if (turn.aborted) return;
        if (error instanceof Problem && !error.isPassing && error.kind !== "failed") {
          this.#tell("off");
          // Signed out or not allowed: only a new session helps, which starts a new stream.
          this.#isHolder = false;
          return;
        }
        if (!hasLocks && error instanceof Problem && error.kind === "slow") await this.#poll(turn);
        else await this.#pause(pauseBefore(tries++), turn);
      }
    }
  }

  /** Reads one stream. True if it was closed because nothing happens. */
  async #read(turn: AbortSignal, hasLocks: boolean, onOpen: () => void): Promise<boolean> {
    this.#tell("opening");
    const own = new AbortController();
    const signal = AbortSignal.any([turn, own.signal]);
    const late = hasLocks ? undefined : setTimeout(() => own.abort(), OPEN_SECONDS * 1000);
    try {
      const headers = this.#mark === null ? undefined : { "Last-Event-ID": this.#mark };
      const body = await this.#source.stream("/events", { tasks: "none" }, headers, signal);
      clearTimeout(late);
      onOpen();
      this.#tell("live");
      return await this.#consume(body.getReader(), own);
    } catch (error) {
      if (!turn.aborted && isAbort(error)) throw new Problem("slow", "No stream", "The stream could not be opened.");
      if (!turn.aborted) this.#tell("lost");
      throw error;
    } finally {
      clearTimeout(late);
      own.abort();
    }
  }

  async #consume(reader: ReadableStreamDefaultReader<Uint8Array>, own: AbortController): Promise<boolean> {
    const parser = new EventParser();
    const decoder = new TextDecoder();
    let isQuiet = false;
    let heard = Date.now();
    const check = setInterval(() => {
      if (Date.now() - heard < SILENCE_SECONDS * 1000) return;
      heard = Date.now();
      void this.#isIdle().then((isIdle) => {
        if (!isIdle) return;
        isQuiet = true;
        void reader.cancel();
      });
    }, 5000);
    try {
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        lastHeard.value = Date.now();
        for (const event of parser.push(decoder.decode(value, { stream: true }))) {
          if (event.event !== "ready") heard = Date.now();
          this.#onEvent(event);
        }
      }
    } finally {
      clearInterval(check);
      own.abort();
    }
    if (!isQuiet) throw new Problem("disconnected", "The stream ended", "The server closed the stream.");
    return true;
  }

  /** Whether no run is unfinished. Asked once after a minute of silence. */
  async #isIdle(): Promise<boolean> {
    try {
      const status = await this.#source.get("/status", {});
      return Object.values(status.unfinished).every((number) => number === 0);
    } catch {
      return false;
    }
  }

  #onEvent({ event, data, id }: ServerEvent): void {
    if (id !== null) this.#mark = id;
    if (event === "reset") this.#publish({ kind: "reset" });
    else if (event === "run") this.#publish({ kind: "run", event: JSON.parse(data) as RunEvent });
    else this.#post({ kind: "state", state: "live" });
  }

  async #sleepUntilWoken(turn: AbortSignal): Promise<void> {
    this.#tell("quiet");
    await new Promise<void>((resolve) => {
      this.#awake = resolve;
      turn.addEventListener("abort", () => resolve(), { once: true });
    });
    this.#awake = null;
  }

  async #poll(turn: AbortSignal): Promise<void> {
    this.#tell("polling");
    for (let round = 0; round < 20 && !turn.aborted; round += 1) {
      await this.#pause(POLL_SECONDS, turn);
      if (!turn.aborted) this.#publish({ kind: "reset" });
    }
  }

  async #pause(seconds: number, turn: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, seconds * 1000);
      turn.addEventListener("abort", () => { clearTimeout(timer); resolve(); }, { once: true });
    });
  }

  #publish(change: Change): void {
    notify(change);
    this.#post({ kind: "change", change, mark: this.#mark });
  }

  #tell(state: StreamState): void {
    streamState.value = state;
    this.#post({ kind: "state", state });
  }

  #post(message: Message): void {
    if (!this.#closed.signal.aborted) this.#channel?.postMessage(message);
  }

  #onMessage(message: Message): void {
    if (message.kind === "wake") this.wake(false);
    else if (message.kind === "ask") this.#isHolder && this.#post({ kind: "state", state: streamState.value });
    else if (message.kind === "state") streamState.value = message.state;
    else {
      this.#mark = message.mark ?? this.#mark;
      lastHeard.value = Date.now();
      notify(message.change);
    }
  }
}

function notify(change: Change): void {
  for (const listener of [...listeners]) listener(change);
}
