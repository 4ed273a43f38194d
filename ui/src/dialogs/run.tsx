/** Starts a run: a form made from the workflow's params. Opened by `showDialog("run")`. */

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { WorkflowWithDefinition } from "../api.d.ts";
import { complaints, entered, paramFields, paramOptions, textOf } from "../data/params.ts";
import { asProblem } from "../data/problem.ts";
import { source } from "../data/session.ts";
import { Action } from "../parts/action.tsx";
import { CommandLine } from "../parts/command.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Loaded } from "../parts/page.tsx";
import { ParamForm } from "../parts/params.tsx";
import { type ChosenData, ChosenWorkflow, clickPrimary, type DialogProps, useChosen } from "../parts/chosen.tsx";
import { go, href, path } from "../router.ts";
import { argument, count, shortId } from "../words.ts";

const SHOWN_TASKS = 8;

export default function RunDialog({ onClose }: DialogProps): JSX.Element {
  const chosen = useChosen();
  if (chosen.name === null) return <Dialog title="Run a workflow" onClose={onClose}><ChosenWorkflow /></Dialog>;
  if (chosen.read.data.value === undefined) return <Dialog title={`Run ${chosen.name}`} onClose={onClose}><Loaded read={chosen.read} what="the workflow" gone={`There is no workflow ${chosen.name}`}>{() => null}</Loaded></Dialog>;
  return <RunForm key={chosen.name} {...chosen.read.data.value} onClose={onClose} />;
}

function RunForm({ workflow, params, like, onClose }: ChosenData & DialogProps): JSX.Element {
  const fields = useMemo(() => paramFields(params), [params]);
  const [texts, setTexts] = useState<Record<string, string>>(() => (like ? Object.fromEntries(fields.filter((field) => Object.hasOwn(like, field.name)).map((field) => [field.name, textOf(field, like[field.name])])) : {}));
  const [refused, setRefused] = useState<Record<string, string>>({});
  const [isTried, setTried] = useState(false);
  const found = entered(fields, texts);
  const errors = { ...refused, ...(isTried ? found.errors : visibleErrors(found.errors, texts)) };
  const { name } = workflow;
  const start = async (): Promise<void> => {
    setTried(true);
    setRefused({});
    if (Object.keys(found.errors).length > 0) return;
    try {
      const run = await source.act("POST /workflows/{name}/runs", { name }, { params: found.params });
      go(path("runs", run.id));
    } catch (error) {
      const problem = asProblem(error);
      const about = problem.code === "ORK403" ? complaints(problem.detail, fields) : null;
      if (!about || about.rest) throw error;
      setRefused(about.errors);
    }
  };
  return (
    <Dialog
      title={`Run ${name}`}
      onClose={onClose}
      footer={
        <>
          <CommandLine command={`ork trigger ${argument(name)}${paramOptions(fields, found.params)}`} />
          <span class="push" />
          <Action label="Start run" icon="play" kind="primary" role="operator" command={`ork trigger ${argument(name)}${paramOptions(fields, found.params)}`} run={start} done={null} />
        </>
      }
    >
      <div class="run-form" onKeyDown={clickPrimary}>
        <WillRun workflow={workflow} />
        {fields.length === 0 ? <p class="dim">It has no params.</p> : <ParamForm isFirst fields={fields} texts={texts} errors={errors} onInput={(field, text) => { setTexts({ ...texts, [field]: text }); setRefused({ ...refused, [field]: "" }); }} />}
      </div>
    </Dialog>
  );
}

/** While a form was not sent, an empty field is not an error yet. */
function visibleErrors(errors: Readonly<Record<string, string>>, texts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(errors).filter(([name]) => Object.hasOwn(texts, name) && texts[name] !== ""));
}

function WillRun({ workflow }: { workflow: WorkflowWithDefinition }): JSX.Element {
  const given = workflow.definition?.["tasks"];
  const tasks = (Array.isArray(given) ? given : []) as { name: string; foreach?: unknown }[];
  const description = workflow.definition?.["description"];
  return (
    <div class="will-run">
      {typeof description === "string" && <p>{description}</p>}
      <p class="dim">
        {count(tasks.length, "task")} of version <a href={href(`${path("workflows", workflow.name)}?view=versions`)}><code>{shortId(workflow.version)}</code></a>:{" "}
        {tasks.slice(0, SHOWN_TASKS).map((task, place) => <span key={task.name}>{place > 0 && ", "}{task.name}{task.foreach !== undefined && " ×n"}</span>)}
        {tasks.length > SHOWN_TASKS && ` … ${count(tasks.length - SHOWN_TASKS, "more", "more")}`}
      </p>
      {!workflow.enabled && <p class="dim">The workflow is disabled: its schedule does not fire. A run can be started all the same.</p>}
      {workflow.definition === null && <p class="field-error">Its current version cannot be read{workflow.unreadable ? `: ${workflow.unreadable}` : "."}</p>}
    </div>
  );
}
