/** The time as the server has it, once a second while the page is visible. */

import { signal } from "@preact/signals";

let difference = 0;
let stopped: number | null = null;

/** Milliseconds since 1970 by the server's clock. */
export const now = signal(Date.now());

/** The browser's clock may be wrong; times are shown relative to the server's. */
export function setServerTime(time: string | undefined): void {
  const parsed = Date.parse(time ?? "");
  if (Number.isNaN(parsed)) return;
  difference = parsed - Date.now();
  tick();
}

/** For a snapshot: times are relative to when it was made. */
export function stopClockAt(time: string): void {
  stopped = Date.parse(time);
  tick();
}

export function serverNow(): number {
  return stopped ?? Date.now() + difference;
}

export function startClock(): void {
  let timer: ReturnType<typeof setInterval> | undefined;
  const follow = (): void => {
    clearInterval(timer);
    if (document.hidden) return;
    tick();
    timer = setInterval(tick, 1000);
  };
  document.addEventListener("visibilitychange", follow);
  follow();
}

function tick(): void {
  now.value = serverNow();
}
