/** One registry of keyboard shortcuts. `?` lists those that work on the page that is shown. */

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { keep, kept } from "./data/storage.ts";

export interface Shortcut {
  /** `j`, `g h` for one key after the other, `mod+k` for Ctrl or ⌘. */
  keys: string;
  /** What it does, for the list: "Next row". */
  does: string;
  /** The heading in the list. */
  group: string;
  run: (event: KeyboardEvent) => void;
  /** Works also while typing. */
  always?: boolean;
}

const CHORD_MS = 1000;

const registered = signal<readonly Shortcut[]>([]);
/** Shortcuts of a single key can be switched off: speech input may press them by accident. */
export const areOn = signal(kept("shortcuts") !== "off");

export function switchShortcuts(isOn: boolean): void {
  areOn.value = isOn;
  keep("shortcuts", isOn ? null : "off");
}

/** The shortcuts that work now, in the order of their registration. A later one hides an earlier one with the same keys. */
export function activeShortcuts(): Shortcut[] {
  const found = new Map<string, Shortcut>();
  for (const shortcut of [...registered.value].reverse()) if (!found.has(shortcut.keys)) found.set(shortcut.keys, shortcut);
  return [...found.values()].reverse();
}

/** Registers shortcuts while the component is shown. */
export function useShortcuts(shortcuts: readonly Shortcut[]): void {
  const latest = useRef(shortcuts);
  latest.current = shortcuts;
  const names = shortcuts.map((each) => each.keys).join("\n");
  useEffect(() => register(shortcuts.map((each, place) => ({ ...each, run: (event) => latest.current[place]?.run(event) }))), [names]);
}

export function register(shortcuts: readonly Shortcut[]): () => void {
  registered.value = [...registered.peek(), ...shortcuts];
  return () => {
    registered.value = registered.peek().filter((each) => !shortcuts.includes(each));
  };
}

export function startShortcuts(): void {
  let first: { key: string; at: number } | null = null;
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const key = nameOf(event);
    const chord = first && Date.now() - first.at < CHORD_MS ? `${first.key} ${key}` : null;
    first = null;
    const found = (chord ? find(chord, event) : undefined) ?? find(key, event);
    if (found) {
      event.preventDefault();
      found.run(event);
    } else if (isPlain(event)) first = { key, at: Date.now() };
  });
}

function find(keys: string, event: KeyboardEvent): Shortcut | undefined {
  const shortcut = activeShortcuts().find((each) => each.keys === keys);
  if (!shortcut) return undefined;
  if (keys.startsWith("mod+")) return shortcut;
  if (!shortcut.always && (!areOn.value || isTyping(event.target) || isInDialog())) return undefined;
  return isPlain(event) ? shortcut : undefined;
}

function nameOf(event: KeyboardEvent): string {
  return event.ctrlKey || event.metaKey ? `mod+${event.key.toLowerCase()}` : event.key;
}

function isPlain(event: KeyboardEvent): boolean {
  return !event.ctrlKey && !event.metaKey && !event.altKey;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) && !isButtonLike(target);
}

function isButtonLike(target: HTMLElement): boolean {
  return target instanceof HTMLInputElement && /^(checkbox|radio|button|submit|reset)$/.test(target.type);
}

function isInDialog(): boolean {
  return document.querySelector("dialog[open]") !== null;
}
