/** Light, dark, or as the system has it. */

import { signal } from "@preact/signals";
import { keep, kept } from "./data/storage.ts";

export type Theme = "light" | "dark";

export const theme = signal<Theme>(current());

function current(): Theme {
  const chosen = kept("theme");
  if (chosen === "light" || chosen === "dark") return chosen;
  return typeof matchMedia !== "undefined" && matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

export function toggleTheme(): void {
  theme.value = theme.value === "dark" ? "light" : "dark";
  document.documentElement.dataset["theme"] = theme.value;
  keep("theme", theme.value);
}

/** Follows the system until a theme is chosen. Drawings subscribe to `theme` and draw anew. */
export function startTheme(): void {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    if (kept("theme") === null) theme.value = current();
  });
}

let probe: HTMLElement | undefined;

/** A colour of the style sheet as the theme has it, for canvas: `colour("--failed")`. Read it again when `theme` changes. */
export function colour(name: string): string {
  // The value of a variable is text (`light-dark(…)`); only a property of an element has the colour itself.
  probe ??= document.body.appendChild(document.createElement("span"));
  probe.hidden = true;
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}
