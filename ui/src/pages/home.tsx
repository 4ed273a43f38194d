/** What needs me? */

import { useComputed } from "@preact/signals";
import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { Calendar } from "../api.d.ts";
import { now, serverNow } from "../clock.ts";
import { usePaletteActions } from "../commands.ts";
import { type Read, useRead } from "../data/read.ts";
import { DAY, HOUR } from "../health.ts";
import { type Missed, Needs } from "../home/needs.tsx";
import { Running } from "../home/running.tsx";
import { FUTURE_HOURS, PAST_HOURS, Strip } from "../home/strip.tsx";
import { continued, newSince, readVisits, writeVisits } from "../home/visits.ts";
import { useApprovals } from "../parts/approvals.tsx";
import { BulkRefusals } from "../parts/bulk.tsx";
import { Empty } from "../parts/empty.tsx";
import { Choice } from "../parts/form.tsx";
import { Missing, Page, Section } from "../parts/page.tsx";
import { currentQuery, setQuery } from "../router.ts";
import { utc } from "../words.ts";

const RANGES: Readonly<Record<string, number>> = { "1d": DAY, "7d": 7 * DAY };

export default function Home(): JSX.Element {
  const { since, markSeen } = useSince();
  // Runs are listed by their creation: one that was created earlier may have failed since.
  const from = useMemo(() => new Date(since - DAY).toISOString(), [since]);
  const read = useRead("/overview", { since: from, limit: 200 }, { live: true });
  const calendar = useDay();
  const approvals = useApprovals();
  const isComplete = approvals.problem.value === null && calendar.problem.value === null;
  usePaletteActions([{ label: "Mark all failures as seen", words: "home needs you", run: markSeen }]);
  return (
    <Page title="Home" read={read} what="the overview" command="ork status" live>
      {(overview) =>
        overview.workflows.length === 0 && overview.running.length === 0 ? (
          <Empty title="No workflow is deployed yet" icon="workflows" command="ork deploy workflow.yaml">Deploy a workflow file. It shows here with its runs.</Empty>
        ) : (
          <>
            <Section title="Needs you" aside={<Since since={since} markSeen={markSeen} hasFailures={overview.failures.length > 0} />}>
              <Missing read={approvals} what="approvals" />
              <Missing read={calendar} what="scheduled times" />
              <Needs overview={overview} since={since} missed={missedOf(calendar.data.value)} approvals={approvals.data.value?.approvals ?? []} isComplete={isComplete} />
            </Section>
            <BulkRefusals />
            <Running overview={overview} />
            <Strip overview={overview} calendar={calendar.data.value} />
          </>
        )
      }
    </Page>
  );
}

/** The time from which on failures are new, by the address or by the last visit. */
function useSince(): { since: number; markSeen: () => void } {
  const [visits, setVisits] = useState(() => continued(readVisits(), serverNow()));
  useEffect(() => {
    writeVisits(visits);
    const leave = (): void => writeVisits({ ...visits, last: serverNow() });
    document.addEventListener("visibilitychange", leave);
    return () => { document.removeEventListener("visibilitychange", leave); leave(); };
  }, [visits]);
  const range = RANGES[currentQuery.value.get("since") ?? ""];
  const since = useMemo(() => (range === undefined ? newSince(visits, serverNow()) : serverNow() - range), [range, visits]);
  return { since, markSeen: () => { setQuery({ since: null }); setVisits({ seen: serverNow(), last: serverNow() }); } };
}

function Since({ since, markSeen, hasFailures }: { since: number; markSeen: () => void; hasFailures: boolean }): JSX.Element {
  return (
    <span class="since">
      <span class="wide-only number" title="When this browser last showed this page, or the time that is chosen">since {utc(since).slice(0, 16)}</span>
      {hasFailures && <button type="button" class="button plain small" onClick={markSeen} title="Show failures from now on">Mark as seen</button>}
      <Choice label="Failures since" value={currentQuery.value.get("since") ?? ""} onChange={(next) => setQuery({ since: next })} options={[["", "Last looked"], ["1d", "24 h"], ["7d", "7 days"]]} />
    </span>
  );
}

/** Scheduled times of the last and the next hours; read again when the hour changes. */
function useDay(): Read<Calendar> {
  const hour = useComputed(() => Math.floor(now.value / HOUR)).value;
  const given = { from: new Date((hour - PAST_HOURS + 1) * HOUR).toISOString(), to: new Date((hour + FUTURE_HOURS + 1) * HOUR).toISOString() };
  return useRead("/calendar", given);
}


function missedOf(calendar: Calendar | undefined): Missed[] {
  return (calendar?.workflows ?? [])
    .map((each) => ({ workflow: each.workflow, times: each.times.filter((time) => time.state === "missed").map((time) => time.time) }))
    .filter((each) => each.times.length > 0);
}

