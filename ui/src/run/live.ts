/** Changes of a run that its page shows from the event alone, without asking the server. */

import type { RunEvent, RunSummary } from "../api.d.ts";
import { isFinal } from "../words.ts";

/** The summary with the counts of the event; null if the event means more than other counts, so that it has to be read again.
 * `elapsed` are the seconds since the summary was read or changed. */
export function withCounts(summary: RunSummary, event: RunEvent, elapsed: number): RunSummary | null {
  const { run, counts } = event;
  const known = summary.run;
  const isSame = run.status === known.status && run.round === known.round && run.note === known.note && run.cancel_requested_at === known.cancel_requested_at;
  if (!counts || !isSame || isFinal(run.status) || (counts.failed ?? 0) !== (summary.counts.failed ?? 0)) return null;
  let [done, total] = [0, 0];
  for (const [status, number] of Object.entries(counts)) {
    total += number ?? 0;
    if (isFinal(status)) done += number ?? 0;
  }
  const estimate = summary.estimate && { ...summary.estimate, seconds_left: summary.estimate.seconds_left - elapsed };
  return { ...summary, counts, progress: { done, total: total || summary.progress.total }, estimate };
}
