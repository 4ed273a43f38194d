/** The colours and fonts of the theme, for drawings. */

import { colour } from "../theme.ts";
import type { StateKind } from "../words.ts";

const STATES: readonly StateKind[] = ["success", "failed", "running", "queued", "retrying", "skipped", "pending", "cancelled", "paused", "waiting"];

export interface Palette {
  surface: string;
  tint: string;
  tintStrong: string;
  line: string;
  lineStrong: string;
  ink: string;
  dim: string;
  focus: string;
  states: Readonly<Record<StateKind, string>>;
  sans: string;
}

/** Reads the palette. Read it again when the theme changes. */
export function readPalette(): Palette {
  return {
    surface: colour("--surface"),
    tint: colour("--tint"),
    tintStrong: colour("--tint-strong"),
    line: colour("--line"),
    lineStrong: colour("--line-strong"),
    ink: colour("--ink"),
    dim: colour("--dim"),
    focus: colour("--focus"),
    states: Object.fromEntries(STATES.map((kind) => [kind, colour(`--${kind}`)])) as Record<StateKind, string>,
    sans: getComputedStyle(document.body).fontFamily,
  };
}

/** `rgb(1, 2, 3)` → the numbers, for pixels that are written one by one. */
export function channels(text: string): [number, number, number] {
  const [red = 0, green = 0, blue = 0] = (text.match(/[\d.]+/g) ?? []).map(Number);
  return [red, green, blue];
}
