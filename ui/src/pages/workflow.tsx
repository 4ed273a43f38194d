/** Is this workflow getting better or worse? */

import type { JSX } from "preact";
import { useRead } from "../data/read.ts";
import { source } from "../data/session.ts";
import type { PageProps } from "../pages.ts";
import { Action } from "../parts/action.tsx";
import { RunBars } from "../parts/bars.tsx";
import { Empty } from "../parts/empty.tsx";
import { Facts, Loaded, Page, Section } from "../parts/page.tsx";
import { State } from "../parts/state.tsx";
import { href, path } from "../router.ts";
import { argument, utc } from "../words.ts";

export default function WorkflowPage({ params }: PageProps): JSX.Element {
  const name = params["name"] ?? "";
  const read = useRead("/workflows/{name}", { name });
  return (
    <Page
      title={name}
      crumbs={[["workflows", "Workflows"]]}
      read={read}
      what="the workflow"
      gone={`There is no workflow ${name}`}
      command={`ork workflow show ${argument(name)}`}
      live
      actions={<Action label="Run" icon="play" kind="primary" role="operator" command={`ork trigger ${argument(name)}`} run={() => source.act("POST /workflows/{name}/runs", { name }, {})} done={`A run of ${name} is created`} />}
    >
      {(workflow) => (
        <>
          <Facts of={[["Enabled", workflow.enabled ? "yes" : "no"], ["Version", <code>{workflow.version}</code>], ["Last run", workflow.last_run ? <State of={workflow.last_run.status} /> : "–"]]} />
          <Grid name={name} />
        </>
      )}
    </Page>
  );
}

function Grid({ name }: { name: string }): JSX.Element {
  const read = useRead("/workflows/{name}/grid", { name, runs: 30 }, { live: true });
  return (
    <Section title="Last runs">
      <Loaded read={read} what="the runs">
        {({ tasks, runs }) => {
          if (runs.length === 0) return <Empty title="It has not run yet" icon="runs" command={`ork trigger ${argument(name)}`} />;
          const shown = [...runs].reverse();
          return (
            <div class="grid-scroll" tabIndex={0} role="region" aria-label="Tasks and runs">
              <RunBars runs={runs} label="Durations" most={30} />
              <table class="grid">
                <thead class="only-read"><tr><th>Task</th>{shown.map((run) => <th key={run.id}>{utc(run.created_at)}</th>)}</tr></thead>
                <tbody>
                  {tasks.map((task, row) => (
                    <tr key={task}>
                      <th scope="row">{task}</th>
                      {shown.map((run) => {
                        const cell = run.cells[row];
                        return <td key={run.id}>{cell && <a href={href(path("runs", run.id))}><State of={cell.status} quiet /></a>}</td>;
                      })}
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          );
        }}
      </Loaded>
    </Section>
  );
}
