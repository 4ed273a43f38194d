/** Short messages at the edge of the page, and announcements for screen readers. */

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import type { Problem } from "../data/problem.ts";
import { Icon } from "./icons.tsx";

export interface Notice {
  id: number;
  kind: "good" | "bad" | "info";
  text: string;
  hint?: string | null;
}

const SHOWN_MS = 6000;
const ANNOUNCE_MS = 5000;

const notices = signal<readonly Notice[]>([]);
const announced = signal("");
let lastId = 0;
let lastAnnounced = 0;
let waiting: ReturnType<typeof setTimeout> | undefined;

/** Shows a message for six seconds; a bad one stays until it is closed. */
export function notify(kind: Notice["kind"], text: string, hint?: string | null): void {
  const id = ++lastId;
  notices.value = [...notices.value.slice(-3), { id, kind, text, hint }];
  if (kind !== "bad") setTimeout(() => dismiss(id), SHOWN_MS);
}

export function notifyProblem(problem: Problem): void {
  notify("bad", problem.detail || problem.title, problem.hint);
}

/** Says something to screen readers, at most once every five seconds; the latest text wins. */
export function announce(text: string): void {
  clearTimeout(waiting);
  const pause = Math.max(0, lastAnnounced + ANNOUNCE_MS - Date.now());
  waiting = setTimeout(() => {
    lastAnnounced = Date.now();
    announced.value = text;
  }, pause);
}

function dismiss(id: number): void {
  notices.value = notices.value.filter((notice) => notice.id !== id);
}

/** Belongs once into the shell. */
export function Notices(): JSX.Element {
  return (
    <>
      <div class="notices" role="status" aria-live="polite">
        {notices.value.map((notice) => (
          <div class={`notice is-${notice.kind}`} key={notice.id}>
            <span class="notice-text">
              {notice.text}
              {notice.hint && <span class="notice-hint">{notice.hint}</span>}
            </span>
            <button type="button" class="button plain small" aria-label="Close message" onClick={() => dismiss(notice.id)}><Icon name="close" /></button>
          </div>
        ))}
      </div>
      <div class="only-read" role="status" aria-live="polite">{announced.value}</div>
    </>
  );
}
