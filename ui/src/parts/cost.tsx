/** What a run costs by estimate, and by task. Nothing where there is no cost and no budget. */

import type { JSX } from "preact";
import type { RunCost, TaskCost } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { dollars, duration, grouped, shortId } from "../words.ts";
import { CommandLine } from "./command.tsx";
import { type Column, Table } from "./table.tsx";

/** For the head of a run's page: `<Cost run={run.id} />`. */
export function Cost({ run, isFinal = true }: { run: string; isFinal?: boolean }): JSX.Element | null {
  const cost = useRead("/runs/{run}/cost", { run }, isFinal ? {} : { every: 60 }).data.value;
  if (!cost || !isWorthShowing(cost)) return null;
  const isOver = cost.over_budget_at !== null;
  return (
    <details class="cost">
      <summary>
        {dollars(cost.usd)}{!cost.is_complete && " + unknown"} <span class="dim">by estimate</span>
        {cost.budget_usd !== null && <span class={isOver ? "field-error" : "dim"}> · {isOver ? "over the" : "of the"} budget of {dollars(cost.budget_usd)}{isOver && cost.on_exceed === "cancel" && ", cancelled"}</span>}
      </summary>
      <div class="cost-body">
        <Table label="Cost by task" rows={cost.tasks} columns={COLUMNS} rowKey={(each) => each.name} rowHeight={30} sortParam="cost" />
        {cost.operations.length > 0 && <p class="dim">Operations of store and bucket {dollars(cost.operations_usd)}: {cost.operations.map((each) => `${grouped(each.count)} ${each.name}`).join(", ")}.</p>}
        <p class="dim">From list prices of {cost.prices_date}, not a bill.{cost.running_attempts > 0 && ` ${cost.running_attempts} still running.`}</p>
        <CommandLine command={`ork cost ${shortId(cost.run)}`} />
      </div>
    </details>
  );
}

const COLUMNS: readonly Column<TaskCost>[] = [
  { key: "name", head: "Task", width: "minmax(6rem, 2fr)", cell: (each) => each.name },
  { key: "where", head: "Where", width: "minmax(5rem, 1fr)", wide: true, cell: (each) => <span class="dim">{each.where.join(", ")}</span> },
  { key: "attempts", head: "Attempts", width: "5rem", align: "right", wide: true, cell: (each) => grouped(each.attempts) },
  { key: "ran", head: "Ran", width: "5rem", align: "right", cell: (each) => duration(each.seconds), sort: (a, b) => a.seconds - b.seconds },
  { key: "vcpu", head: "vCPU s", width: "5rem", align: "right", wide: true, cell: (each) => (each.vcpu_seconds === null ? "–" : grouped(Math.round(each.vcpu_seconds))) },
  { key: "usd", head: "Estimate", width: "6.5rem", align: "right", cell: (each) => (each.unknown > 0 ? <span title={each.why_unknown ?? undefined}>{each.usd > 0 ? `${dollars(each.usd)} + ?` : "unknown"}</span> : dollars(each.usd)), sort: (a, b) => a.usd - b.usd },
];

function isWorthShowing(cost: RunCost): boolean {
  return cost.usd > 0 || cost.unknown_attempts > 0 || cost.budget_usd !== null;
}
