/** Marks beside the scroll bar: where hits and errors are in the whole log. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";

const STEPS = 400;

export function HitMap({ lines, total, onGo }: { lines: readonly number[]; total: number; onGo: (line: number) => void }): JSX.Element {
  const marks = useMemo(() => {
    const rows = new Set<number>();
    for (const line of lines) rows.add(Math.round(((line - 1) / Math.max(1, total - 1)) * STEPS));
    return [...rows].map((row) => `M0 ${row}h10`).join("");
  }, [lines, lines.length, total]);
  const onClick = (event: MouseEvent): void => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const wanted = ((event.clientY - box.top) / box.height) * total;
    const nearest = lines.reduce((best, line) => (Math.abs(line - wanted) < Math.abs(best - wanted) ? line : best), lines[0] ?? 1);
    onGo(nearest);
  };
  // The arrows of the search do the same by keyboard.
  return (
    <svg class="hit-map" viewBox={`0 -2 10 ${STEPS + 4}`} preserveAspectRatio="none" aria-hidden="true" onClick={onClick}>
      <path d={marks} vector-effect="non-scaling-stroke" />
    </svg>
  );
}
