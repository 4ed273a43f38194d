/** Actions that the palette offers. Pages add theirs while they are shown. */

import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

export interface PaletteAction {
  label: string;
  /** Further words that find it. */
  words?: string;
  /** A shortcut that does the same. */
  keys?: string;
  run: () => void;
}

export const paletteActions = signal<readonly PaletteAction[]>([]);

export function usePaletteActions(actions: readonly PaletteAction[]): void {
  const latest = useRef(actions);
  latest.current = actions;
  const names = actions.map((each) => each.label).join("\n");
  useEffect(() => {
    const added = actions.map((each, place) => ({ ...each, run: () => latest.current[place]?.run() }));
    paletteActions.value = [...paletteActions.peek(), ...added];
    return () => {
      paletteActions.value = paletteActions.peek().filter((each) => !added.includes(each));
    };
  }, [names]);
}
