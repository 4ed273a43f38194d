/** Keys of a shortcut. */

import type { JSX } from "preact";

/** `g h` as two keys. */
export function Keys({ of }: { of: string }): JSX.Element {
  return <span class="keys">{of.split(/[ +]/).map((key, place) => <kbd key={place}>{key === "mod" ? modKey() : key === "Escape" ? "Esc" : key.length === 1 && of.startsWith("mod+") ? key.toUpperCase() : key}</kbd>)}</span>;
}

export function modKey(): string {
  return /Mac|iP/.test(navigator.platform) ? "⌘" : "Ctrl";
}
