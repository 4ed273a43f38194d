/** Icons as inline drawings; they take the colour of the text around them. */

import type { ComponentChildren, JSX } from "preact";
import type { StateKind } from "../words.ts";

const NAMED = {
  home: <path d="M2.5 7.2 8 2.8l5.5 4.4v6a.8.8 0 0 1-.8.8H10V9.8H6V14H3.3a.8.8 0 0 1-.8-.8z" />,
  runs: <path d="M2.5 4h7M2.5 8h11M2.5 12h5M12.2 2.6 14 4l-1.8 1.4M10 10.6 12.4 12 10 13.4z" />,
  workflows: <><circle cx="3.7" cy="8" r="1.7" /><circle cx="12.3" cy="3.8" r="1.7" /><circle cx="12.3" cy="12.2" r="1.7" /><path d="M5.4 8h1.2c2.4 0 1.4-4.2 4-4.2M6.6 8c2.4 0 1.4 4.2 4 4.2" /></>,
  schedules: <><rect x="2.3" y="3.3" width="11.4" height="10.4" rx="1.6" /><path d="M2.3 6.7h11.4M5.3 1.9v2.6M10.7 1.9v2.6M8 8.7v2l1.4.9" /></>,
  system: <><rect x="2" y="2.8" width="12" height="4.2" rx="1.2" /><rect x="2" y="9" width="12" height="4.2" rx="1.2" /><path d="M4.6 4.9h.01M4.6 11.1h.01M8 4.9h3.5M8 11.1h3.5" /></>,
  access: <><circle cx="5.2" cy="10.8" r="2.9" /><path d="m7.3 8.7 6-6M11 5l2 2M9.3 6.7l1.2 1.2" /></>,
  search: <><circle cx="7" cy="7" r="4.3" /><path d="m10.3 10.3 3.4 3.4" /></>,
  sun: <><circle cx="8" cy="8" r="2.9" /><path d="M8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1" /></>,
  moon: <path d="M13.3 9.7A5.8 5.8 0 0 1 6.3 2.7a5.8 5.8 0 1 0 7 7z" />,
  help: <><circle cx="8" cy="8" r="6" /><path d="M6.3 6.3a1.8 1.8 0 1 1 2.6 1.6c-.6.3-.9.7-.9 1.3M8 11.3h.01" /></>,
  close: <path d="m4 4 8 8M12 4l-8 8" />,
  copy: <><rect x="5.5" y="5.5" width="8" height="8" rx="1.5" /><path d="M10.5 5.5V3.8a1.3 1.3 0 0 0-1.3-1.3H3.8a1.3 1.3 0 0 0-1.3 1.3v5.4a1.3 1.3 0 0 0 1.3 1.3h1.7" /></>,
  check: <path d="m3 8.5 3.2 3.2L13 4.8" />,
  more: <path d="M3.5 8h.01M8 8h.01M12.5 8h.01" />,
  out: <path d="M6.5 2.5H4A1.5 1.5 0 0 0 2.5 4v8A1.5 1.5 0 0 0 4 13.5h2.5M10.5 5 13.5 8l-3 3M13.5 8h-7" />,
  down: <path d="m4 6 4 4 4-4" />,
  left: <path d="m10 4-4 4 4 4" />,
  right: <path d="m6 4 4 4-4 4" />,
  up: <path d="m4 10 4-4 4 4" />,
  retry: <path d="M13 8a5 5 0 1 1-1.6-3.7M13 2.5v2.8h-2.8" />,
  play: <path d="M5 3.2v9.6l7.5-4.8z" />,
  stop: <rect x="4" y="4" width="8" height="8" rx="1.2" />,
  pause: <path d="M5.5 3.5v9M10.5 3.5v9" />,
  filter: <path d="M2.5 3.5h11L9.3 8.6v4.2l-2.6-1.3V8.6z" />,
  warn: <path d="M8 2.5 14.2 13.3H1.8zM8 6.5v3.2M8 11.6h.01" />,
  lock: <><rect x="3.3" y="7" width="9.4" height="6.5" rx="1.4" /><path d="M5.5 7V5a2.5 2.5 0 0 1 5 0v2" /></>,
  plug: <path d="M5.5 2.5v3M10.5 2.5v3M4 5.5h8v2a4 4 0 0 1-8 0zM8 11.5v2.5" />,
} satisfies Record<string, JSX.Element>;

export type IconName = keyof typeof NAMED;

export function Icon({ name }: { name: IconName }): JSX.Element {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      {NAMED[name]}
    </svg>
  );
}

/** Ork's sign. */
export function Mark(): JSX.Element {
  return (
    <svg class="mark" viewBox="0 0 24 24" aria-hidden="true" focusable="false">
      <path d="M6 6v4.5A3.5 3.5 0 0 0 9.5 14H16M6 10v8" />
      <circle class="mark-live" cx="6" cy="5" r="3" />
      <circle cx="6" cy="19" r="3" />
      <circle cx="18" cy="14" r="3" />
    </svg>
  );
}

// Filled shapes differ without colour: round, square, ring, dashed ring.
const disc = (inner: ComponentChildren): JSX.Element => <><circle class="fill" cx="8" cy="8" r="7" />{inner}</>;
const ring = (inner: ComponentChildren): JSX.Element => <><circle class="line" cx="8" cy="8" r="6.2" />{inner}</>;

const GLYPHS: Record<StateKind, JSX.Element> = {
  success: disc(<path class="cut" d="m4.9 8.3 2.2 2.2 4.1-4.6" />),
  failed: disc(<path class="cut" d="m5.6 5.6 4.8 4.8M10.4 5.6l-4.8 4.8" />),
  running: disc(<path class="cut solid" d="M6.5 5.1v5.8L11 8z" />),
  queued: ring(<path class="line" d="M8 4.6V8l2.2 1.5" />),
  retrying: <><path class="line" d="M13.6 8.6a5.7 5.7 0 1 1-1.3-4.3" /><path class="line" d="M13.2 1.7v3h-3" /></>,
  skipped: ring(<path class="line" d="m3.7 12.3 8.6-8.6" />),
  pending: <circle class="line dashed" cx="8" cy="8" r="6.2" />,
  cancelled: <rect class="fill" x="2" y="2" width="12" height="12" rx="2.5" />,
  paused: ring(<path class="line" d="M6.4 5.6v4.8M9.6 5.6v4.8" />),
  waiting: ring(<path class="line" d="M6.5 6.6a1.5 1.5 0 1 1 2.2 1.3c-.5.3-.7.6-.7 1M8 11h.01" />),
};

/** The glyph of a state in its colour. A word has to stand beside it. */
export function Glyph({ kind }: { kind: StateKind }): JSX.Element {
  return (
    <svg class={`glyph is-${kind}`} viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      {GLYPHS[kind]}
    </svg>
  );
}
