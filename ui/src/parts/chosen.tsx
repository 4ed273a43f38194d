/** The workflow that a dialog is about: named by the page's address, by `workflow=` or by the run that is shown. */

import type { JSX } from "preact";
import type { ParamField, WorkflowWithDefinition } from "../api.d.ts";
import { type Read, useLoad, useRead } from "../data/read.ts";
import type { Source } from "../data/source.ts";
import { currentPath, currentQuery, match, setQuery } from "../router.ts";
import { Empty } from "./empty.tsx";
import { Select } from "./form.tsx";
import { Loaded } from "./page.tsx";

export interface DialogProps {
  onClose: () => void;
}

export interface Chosen {
  /** Null: the person has to choose. */
  name: string | null;
  read: Read<ChosenData>;
}

export interface ChosenData {
  workflow: WorkflowWithDefinition;
  params: readonly ParamField[];
  /** The params of an earlier run, to start with. */
  like: Readonly<Record<string, unknown>> | null;
}

/** Reads the workflow of the address. On the page of a run, also the params of that run. */
export function useChosen(): Chosen {
  const found = match(PLACES, currentPath.value);
  const run = found?.page === "run" ? (found.params["id"] ?? null) : currentQuery.value.get("like");
  const name = found?.page === "workflow" ? (found.params["name"] ?? null) : currentQuery.value.get("workflow");
  const read = useLoad(run === null && name === null ? null : `chosen ${name ?? ""} ${run ?? ""}`, (from, signal) => load(from, name, run, signal));
  return { name: name ?? read.data.value?.workflow.name ?? (run === null ? null : ""), read };
}

const PLACES = [{ pattern: "workflows/:name", page: "workflow" }, { pattern: "runs/:id", page: "run" }];

async function load(from: Source, name: string | null, run: string | null, signal: AbortSignal): Promise<ChosenData> {
  const earlier = run === null ? null : (await from.get("/runs/{run}/summary", { run }, { signal })).run;
  const given = { name: name ?? earlier?.workflow ?? "" };
  const [workflow, { params }] = await Promise.all([from.get("/workflows/{name}", given, { signal }), from.get("/workflows/{name}/params", given, { signal })]);
  return { workflow, params, like: earlier?.workflow === workflow.name ? earlier.params : null };
}

/** A list of workflows to choose from; the choice is in the address. */
export function ChosenWorkflow(): JSX.Element {
  const read = useRead("/workflows", { limit: 1000 });
  return (
    <Loaded read={read} what="the workflows">
      {({ workflows }) =>
        workflows.length === 0
          ? <Empty title="No workflow is deployed yet" icon="workflows" command="ork deploy workflow.yaml" />
          : <Select label="Workflow" value="" onChange={(name) => setQuery({ workflow: name })} options={[["", "choose"], ...workflows.map((each) => [each.name, each.name] as const)]} />}
    </Loaded>
  );
}

/** Enter in a field is a click on the dialog's main button. */
export function clickPrimary(event: KeyboardEvent): void {
  if (event.key !== "Enter" || event.isComposing || !(event.target instanceof HTMLInputElement)) return;
  event.preventDefault();
  (event.target.closest("dialog")?.querySelector(".dialog-foot .primary") as HTMLElement | null)?.click();
}
