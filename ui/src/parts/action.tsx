/** A button that changes something. It shows its command, asks if it should, and says what came of it. */

import type { ComponentChildren, JSX } from "preact";
import { useState } from "preact/hooks";
import { asProblem } from "../data/problem.ts";
import { may, type Role, source } from "../data/session.ts";
import { streamState, wakeStream } from "../data/stream.ts";
import { CommandLine } from "./command.tsx";
import { Dialog } from "./dialog.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { notify, notifyProblem } from "./notice.tsx";

export interface ActionProps {
  label: string;
  /** The role that the API asks for. */
  role: Role;
  /** The command that does the same; it is the tooltip and stands in the question. */
  command: string;
  run: () => Promise<unknown>;
  /** The message after it was done; null for none. */
  done?: string | null;
  /** Asks before: what will happen. */
  ask?: string;
  /** Fields in the question, for example a reason. They belong to the caller, and so does the command that contains them. */
  fields?: ComponentChildren;
  icon?: IconName;
  kind?: "primary" | "danger" | "plain";
  small?: boolean;
  /** Why it cannot be done now; the button is then disabled. */
  reason?: string | null;
  onDone?: () => void;
}

export function Action(props: ActionProps): JSX.Element | null {
  const [isBusy, setBusy] = useState(false);
  const [isAsking, setAsking] = useState(false);
  if (!source.canAct) return null;
  const reason = reasonAgainst(props);
  const work = async (): Promise<void> => {
    setAsking(false);
    setBusy(true);
    try {
      await props.run();
      wakeStream();
      if (props.done !== null) notify("good", props.done ?? `${props.label}: accepted`);
      props.onDone?.();
    } catch (error) {
      notifyProblem(asProblem(error));
    }
    setBusy(false);
  };
  return (
    <>
      <button
        type="button"
        class={`button ${props.kind ?? ""}${props.small ? " small" : ""}`}
        // aria-disabled, not disabled: the reason can be reached by keyboard.
        aria-disabled={reason !== null || isBusy ? true : undefined}
        title={reason ?? props.command}
        onClick={() => { if (reason === null && !isBusy) (props.ask || props.fields ? setAsking(true) : void work()); }}
      >
        {props.icon && <Icon name={props.icon} />}
        {isBusy ? `${props.label}…` : props.label}
      </button>
      {isAsking && (
        <Dialog
          title={props.ask ? `${props.label}?` : props.label}
          onClose={() => setAsking(false)}
          footer={
            <>
              <CommandLine command={props.command} />
              <span class="push" />
              <button type="button" class="button" onClick={() => setAsking(false)}>Not now</button>
              <button type="button" class={`button ${props.kind === "danger" ? "danger" : "primary"}`} onClick={() => void work()}>{props.label}</button>
            </>
          }
        >
          {props.ask && <p>{props.ask}</p>}
          {props.fields && <form class="ask-fields" onSubmit={(event) => { event.preventDefault(); void work(); }}>{props.fields}</form>}
        </Dialog>
      )}
    </>
  );
}

function reasonAgainst({ role, reason }: ActionProps): string | null {
  if (reason) return reason;
  if (!may(role)) return `This needs the role ${role}.`;
  if (streamState.value === "lost") return "The server does not answer at the moment.";
  return null;
}
