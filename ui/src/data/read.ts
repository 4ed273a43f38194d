/** `useRead`: data of a page, kept fresh. `<Page read={…}>` shows its states. */

import { type Signal, signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { pauseBefore } from "./backoff.ts";
import { asProblem, isAbort, type Problem } from "./problem.ts";
import { isSignedOut, source } from "./session.ts";
import { type Answer, type Given, type ReadPath, type Source } from "./source.ts";
import { type Change, onChange } from "./stream.ts";

/** One thing that is read. Data stay while they are read again, and when that fails. */
export interface Read<T> {
  readonly data: Signal<T | undefined>;
  readonly problem: Signal<Problem | null>;
  readonly isLoading: Signal<boolean>;
  /** The time of the data, in milliseconds. */
  readonly asOf: Signal<number | null>;
  /** When it is tried again after an error that may pass, in milliseconds. */
  readonly nextTry: Signal<number | null>;
  reload(): void;
}

export interface LiveOptions {
  /** Read again when a run changed: always, or if the function says so. */
  live?: boolean | ((change: Change) => boolean);
  /** Seconds between two reads for changes, at least; default 1. It grows while changes keep coming. */
  pause?: number;
  /** Read again every so many seconds while the page is visible. */
  every?: number;
  /** Show the data of the previous key until those of the new one are there: for filters. */
  keep?: boolean;
  /** Seconds without an answer after which it is an error; default 10. */
  seconds?: number;
}

/** Reads a path of the API: `useRead("/runs", { limit: 50 }, { live: true })`. Given null, it reads nothing yet. */
export function useRead<P extends ReadPath>(path: P, given: Given<P> | null, options: LiveOptions = {}): Read<Answer<P>> {
  const key = given === null ? null : `${path} ${JSON.stringify(given)}`;
  return useLoad(key, (from, signal) => from.get(path, given as Given<P>, { signal, seconds: options.seconds }), options);
}

/** Reads by a function. A changed key reads anew; a null key reads nothing. */
export function useLoad<T>(key: string | null, load: (from: Source, signal: AbortSignal) => Promise<T>, options: LiveOptions = {}): Read<T> {
  const before = useRef<Loader<T> | undefined>(undefined);
  const read = useMemo(() => new Loader<T>(options.keep ? before.current?.data.peek() : undefined), [key]);
  before.current = read;
  read.load = load;
  read.options = options;
  useEffect(() => (key === null ? undefined : read.start()), [read, key]);
  return read;
}

const LEAST_PAUSE = 1;
const MOST_PAUSE = 4;

class Loader<T> implements Read<T> {
  readonly data: Signal<T | undefined>;
  readonly problem = signal<Problem | null>(null);
  readonly isLoading = signal(false);
  readonly asOf = signal<number | null>(null);
  readonly nextTry = signal<number | null>(null);
  load!: (from: Source, signal: AbortSignal) => Promise<T>;
  options: LiveOptions = {};
  #turn: AbortController | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #tries = 0;
  #isStale = false;
  #last = 0;
  /** Seconds between two reads for changes. They grow while changes keep coming, so that a long run costs the server little. */
  #pause = 0;

  constructor(data: T | undefined) {
    this.data = signal(data);
  }

  /** Reads now and keeps the data fresh, until the returned function is called. */
  start(): () => void {
    const ends = [
      onChange((change) => this.#onChange(change)),
      listen(document, "visibilitychange", () => this.#onVisible()),
      isSignedOut.subscribe((isOut) => !isOut && this.problem.peek()?.kind === "signed out" && this.reload()),
    ];
    this.reload();
    return () => {
      for (const end of ends) end();
      clearTimeout(this.#timer);
      this.#turn?.abort();
    };
  }

  reload = (): void => {
    clearTimeout(this.#timer);
    this.#turn?.abort();
    const turn = new AbortController();
    this.#turn = turn;
    if (this.#isStale) this.#pause = Math.min(MOST_PAUSE, this.#pause * 2);
    this.#isStale = false;
    this.#last = Date.now();
    this.isLoading.value = true;
    this.nextTry.value = null;
    void this.#run(turn.signal);
  };

  async #run(signal: AbortSignal): Promise<void> {
    try {
      const data = await this.load(source, signal);
      if (signal.aborted) return;
      this.data.value = data;
      this.asOf.value = Date.now();
      this.problem.value = null;
      this.#tries = 0;
      if (this.options.every) this.#later(this.options.every * 1000);
    } catch (error) {
      if (signal.aborted || isAbort(error)) return;
      this.#onProblem(asProblem(error));
    }
    this.isLoading.value = false;
    // A change came while it was read: what was read may be older.
    if (this.#isStale) this.#soon();
  }

  #onProblem(problem: Problem): void {
    this.problem.value = problem;
    if (!problem.isPassing) return;
    const seconds = problem.retryAfter ?? pauseBefore(this.#tries++);
    this.nextTry.value = Date.now() + seconds * 1000;
    this.#later(seconds * 1000);
  }

  #onChange(change: Change): void {
    const { live } = this.options;
    if (!live || (typeof live === "function" && !live(change))) return;
    this.#isStale = true;
    if (isEnd(change)) this.#pause = 0;
    if (!this.isLoading.peek()) this.#soon();
  }

  #onVisible(): void {
    if (document.hidden) {
      // A page that nobody sees asks nothing.
      clearTimeout(this.#timer);
      if (this.nextTry.peek() !== null || this.options.every) this.#isStale = true;
    } else if (this.#isStale) this.#soon();
  }

  #soon(): void {
    if (document.hidden) return;
    const since = (Date.now() - this.#last) / 1000;
    const least = this.options.pause ?? LEAST_PAUSE;
    if (this.#pause < least || since > 2 * this.#pause) this.#pause = least;
    this.#later(Math.max(0, this.#pause - since) * 1000);
  }

  #later(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (document.hidden) this.#isStale = true;
    else this.#timer = setTimeout(this.reload, milliseconds);
  }
}

/** The last change of a run shows soon. */
function isEnd(change: Change): boolean {
  return change.kind === "run" && change.event.run.finished_at !== null;
}

function listen(target: EventTarget, event: string, listener: () => void): () => void {
  target.addEventListener(event, listener);
  return () => target.removeEventListener(event, listener);
}
