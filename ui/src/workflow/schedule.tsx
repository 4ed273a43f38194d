/** When the workflow runs: in words, the next times on its own clocks, and what a clock change does to them. */

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { WorkflowWithDefinition } from "../api.d.ts";
import { now, serverNow } from "../clock.ts";
import { cronInWords } from "../cron.ts";
import { useLoad, useRead } from "../data/read.ts";
import { dayName, localTime } from "../data/zones.ts";
import { DAY } from "../health.ts";
import { Empty } from "../parts/empty.tsx";
import { Icon } from "../parts/icons.tsx";
import { Facts, Loaded, Section } from "../parts/page.tsx";
import { Ago } from "../parts/time.tsx";
import { duration, utc } from "../words.ts";
import { Switch } from "./switch.tsx";

const SHOWN_TIMES = 12;
/** The longest range of one request, in days; twice that reaches the next clock change. */
const RANGE = 92;

const CATCHUP = { none: "missed times are skipped", last: "the last missed time is made up for", all: "all missed times are made up for" } as const;

export function ScheduleTab({ workflow, reload }: { workflow: WorkflowWithDefinition; reload: () => void }): JSX.Element {
  const { name, schedule } = workflow;
  if (!schedule) return <Empty title="This workflow has no schedule" icon="schedules" command="ork deploy workflow.yaml">Write <code>schedule: "0 2 * * *"</code> into its file and deploy it again.</Empty>;
  const words = cronInWords(schedule.cron);
  return (
    <>
      <Facts
        of={[
          ["When", words === schedule.cron ? <code>{words}</code> : words],
          ["Expression", <code>{schedule.cron}</code>],
          ["Time zone", schedule.timezone],
          ["Catch-up", CATCHUP[schedule.catchup]],
          ...(schedule.jitter > 0 ? [["Jitter", `up to ${duration(schedule.jitter)}`] as const] : []),
          ["State", <span class="switch-line">{workflow.enabled ? "on" : "off"} <Switch name={name} isOn={workflow.enabled} onDone={reload} /></span>],
        ]}
      />
      <div class="two">
        <Next name={name} zone={schedule.timezone} isOn={workflow.enabled} />
        <Notes name={name} />
      </div>
    </>
  );
}

function Next({ name, zone, isOn }: { name: string; zone: string; isOn: boolean }): JSX.Element {
  const read = useRead("/schedules", { next: SHOWN_TIMES, limit: 1000 });
  return (
    <Section title="Next times">
      <Loaded read={read} what="the next times">
        {({ schedules }) => {
          const times = schedules.find((each) => each.workflow === name)?.next ?? [];
          if (times.length === 0) return <p class="dim">{isOn ? "No time lies ahead." : "It is off: no time lies ahead."}</p>;
          return (
            <ol class="list times-list">
              {times.filter((time) => Date.parse(time) > now.value - DAY).map((time) => {
                const local = localTime(Date.parse(time), zone);
                return <li key={time}><span class="number time-clock">{local.clock}</span><span>{dayName(local.day, "long")}</span><span class="dim number wide-only">{utc(time)}</span><span class="list-end dim"><Ago at={time} /></span></li>;
              })}
            </ol>
          );
        }}
      </Loaded>
    </Section>
  );
}

/** Times that a clock change skips or repeats within half a year. */
function Notes({ name }: { name: string }): JSX.Element {
  const start = useMemo(() => serverNow(), []);
  const read = useLoad(`clock changes ${name}`, async (from, signal) => {
    const parts = await Promise.all([0, 1].map((part) => from.get("/calendar", { workflow: name, from: new Date(start + part * RANGE * DAY).toISOString(), to: new Date(start + (part + 1) * RANGE * DAY).toISOString() }, { signal })));
    const found = parts.map((part) => part.workflows[0]);
    return { notes: found.flatMap((each) => each?.notes ?? []), isCut: found.some((each) => each?.partial), problem: found.find((each) => each?.problem)?.problem ?? null };
  });
  return (
    <Section title="Clock changes" aside="the next half year">
      <Loaded read={read} what="clock changes">
        {({ notes, isCut, problem }) => (
          <ul class="list">
            {problem && <li><Icon name="warn" /><span>{problem}</span></li>}
            {notes.map((note) => <li key={note.local + note.kind}><Icon name="schedules" /><span>{note.text}</span></li>)}
            {notes.length === 0 && !problem && <li class="dim"><Icon name="check" />No time is skipped or repeated by a clock change.</li>}
            {isCut && <li class="dim">It runs so often that only the first weeks were looked at.</li>}
          </ul>
        )}
      </Loaded>
    </Section>
  );
}
