/** Tasks that wait for a person: the question, since and until when, and the decision with a comment. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { Approvals as ApprovalList, PendingApproval } from "../api.d.ts";
import { type Read, useRead } from "../data/read.ts";
import { session, source } from "../data/session.ts";
import { href, path } from "../router.ts";
import { argument, shortId } from "../words.ts";
import { Action } from "./action.tsx";
import { TextField } from "./form.tsx";
import { Section } from "./page.tsx";
import { State } from "./state.tsx";
import { Ago } from "./time.tsx";

export function useApprovals(): Read<ApprovalList> {
  return useRead("/approvals", {}, { live: true });
}

/** A section of a page; nothing while nothing waits. */
export function Approvals(): JSX.Element | null {
  const waiting = useApprovals().data.value?.approvals ?? [];
  if (waiting.length === 0) return null;
  return <Section title="Waits for approval" aside={waiting.length > 1 ? `${waiting.length} questions` : undefined}><ApprovalRows waiting={waiting} /></Section>;
}

export function ApprovalRows({ waiting }: { waiting: readonly PendingApproval[] }): JSX.Element {
  return <ul class="list approvals">{waiting.map((each) => <Row of={each} key={`${each.run} ${each.task}`} />)}</ul>;
}

function Row({ of }: { of: PendingApproval }): JSX.Element {
  const isOwn = of.not_by !== null && of.not_by === session.value?.name;
  return (
    <li>
      <State of="waiting" quiet />
      <span class="approval-text">
        <b>{of.message}</b>
        <span class="dim">
          <a href={href(path("runs", of.run))}>{of.workflow} › {of.task}</a> · asked <Ago at={of.since} />
          {of.due && <> · fails <Ago at={of.due} /></>}
          {isOwn ? " · you started it, somebody else must approve" : of.not_by && ` · for anyone but ${of.not_by}`}
        </span>
      </span>
      <span class="list-end approval-actions">
        <Decide of={of} kind="approve" reason={isOwn ? "You started this run. Somebody else must approve it." : null} />
        <Decide of={of} kind="reject" reason={null} />
      </span>
    </li>
  );
}

const SAYS = {
  approve: { label: "Approve", done: "approved", ask: "The task succeeds and the run goes on. Your name is recorded." },
  reject: { label: "Reject", done: "rejected", ask: "The task fails, and tasks that depend on it are skipped. Your name is recorded." },
} as const;

function Decide({ of, kind, reason }: { of: PendingApproval; kind: "approve" | "reject"; reason: string | null }): JSX.Element {
  const [comment, setComment] = useState("");
  const { label, ask, done } = SAYS[kind];
  const command = `ork ${kind} ${shortId(of.run)} ${argument(of.task)}${comment ? ` --comment ${argument(comment)}` : ""}`;
  return (
    <Action
      label={label}
      small
      kind={kind === "reject" ? "danger" : undefined}
      role="operator"
      reason={reason}
      command={command}
      ask={ask}
      fields={<><p class="question">{of.message}</p><TextField label="Comment" hint="Optional. It is stored with the decision." value={comment} onInput={setComment} /></>}
      run={() => source.act(kind === "approve" ? "POST /runs/{run}/approve" : "POST /runs/{run}/reject", { run: of.run }, { task: of.task, comment: comment || null })}
      done={`${of.workflow} › ${of.task}: ${done}`}
    />
  );
}
