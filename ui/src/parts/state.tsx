/** A state: glyph, word and colour together, never colour alone. */

import type { JSX } from "preact";
import { grouped, lookOf, runState } from "../words.ts";
import { Glyph } from "./icons.tsx";

/** `<State of={run.status} />`. `quiet` keeps the word for screen readers only, where many stand beside each other. */
export function State({ of, quiet = false }: { of: string; quiet?: boolean }): JSX.Element {
  const look = lookOf(of);
  return (
    <span class="state" title={quiet ? look.word : undefined}>
      <Glyph kind={look.kind} />
      <span class={quiet ? "only-read" : "state-word"}>{look.word}</span>
    </span>
  );
}

/** The state of a run; a damaged or quarantined one is shown as such. */
export function RunState({ run, quiet = false }: { run: { status: string; unreadable?: string | null; note?: string | null }; quiet?: boolean }): JSX.Element {
  return <State of={runState(run)} quiet={quiet} />;
}

const ORDER = ["failed", "running", "dispatched", "paused", "pending", "skipped", "cancelled", "success"];

/** `✗ 41 failed  ✓ 1,160 success`: only states that occur. */
export function Counts({ of }: { of: Readonly<Partial<Record<string, number>>> }): JSX.Element {
  const shown = Object.entries(of).filter(([, number]) => number).sort(([a], [b]) => ORDER.indexOf(a) - ORDER.indexOf(b));
  return (
    <span class="counts">
      {shown.map(([state, number]) => (
        <span class="state" key={state}>
          <Glyph kind={lookOf(state).kind} />
          <span class="state-word"><b>{grouped(number ?? 0)}</b> {lookOf(state).word}</span>
        </span>
      ))}
    </span>
  );
}
