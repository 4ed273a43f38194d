/** What needs me? */

import type { JSX } from "preact";
import type { Overview, Run } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { ProgressBar, RunBars } from "../parts/bars.tsx";
import { Empty } from "../parts/empty.tsx";
import { Icon } from "../parts/icons.tsx";
import { Page, Section } from "../parts/page.tsx";
import { RunState } from "../parts/state.tsx";
import { Ago, Took } from "../parts/time.tsx";
import { href, path } from "../router.ts";
import { duration, percent, shortId } from "../words.ts";

export default function Home(): JSX.Element {
  const read = useRead("/overview", {}, { live: true });
  return (
    <Page title="Home" read={read} what="the overview" command="ork status" live>
      {(overview) => (overview.workflows.length === 0 ? <Nothing /> : <Contents overview={overview} />)}
    </Page>
  );
}

function Nothing(): JSX.Element {
  return <Empty title="No workflow is deployed yet" icon="workflows" command="ork deploy workflow.yaml">Deploy a workflow file. It shows here with its runs.</Empty>;
}

function Contents({ overview }: { overview: Overview }): JSX.Element {
  return (
    <>
      <Section title="Needs you" aside={<>since <Ago at={overview.since} /></>}>
        <ul class="list">
          {overview.failures.map((run) => <Failed run={run} key={run.id} />)}
          {overview.late.map((late) => <li key={`${late.workflow} ${late.due}`}><Icon name="schedules" /><a href={href(path("workflows", late.workflow))}>{late.workflow}</a><span class="list-text">should have run <Ago at={late.due} /></span></li>)}
          {overview.broken_locations.map((each) => <li key={each.name}><Icon name="warn" /><a href={href("system")}>{each.name}</a><span class="list-text">{each.error}</span></li>)}
          {overview.failures.length + overview.late.length + overview.broken_locations.length === 0 && <li class="dim"><Icon name="check" />Nothing. No run failed.</li>}
        </ul>
      </Section>
      {overview.running.length > 0 && (
        <Section title="Running now">
          <ul class="list">
            {overview.running.map(({ run, progress }) => (
              <li key={run.id}>
                <RunState run={run} quiet />
                <a href={href(path("runs", run.id))}><code>{shortId(run.id)}</code> {run.workflow}</a>
                {progress && <ProgressBar done={progress.done} total={progress.total} />}
                <span class="list-end"><Took start={run.started_at} end={run.finished_at} /></span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="Workflows">
        <ul class="list">
          {overview.workflows.map((each) => (
            <li key={each.name}>
              <a class="list-name" href={href(path("workflows", each.name))}>{each.name}</a>
              <RunBars runs={each.runs} label={`Last runs of ${each.name}`} />
              <span class="list-end dim number">{percent(each.success_rate)} good · {duration(each.p50)}</span>
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}

function Failed({ run }: { run: Run }): JSX.Element {
  return (
    <li>
      <RunState run={run} quiet />
      <a href={href(path("runs", run.id))}><code>{shortId(run.id)}</code> {run.workflow}</a>
      <span class="list-text">{run.error}</span>
      <span class="list-end dim"><Ago at={run.finished_at ?? run.created_at} /></span>
    </li>
  );
}
