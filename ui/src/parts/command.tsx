/** A command of the command line that does or shows the same, with a button that copies it. */

import { useState } from "preact/hooks";
import type { JSX } from "preact";
import { notify } from "./notice.tsx";
import { Icon } from "./icons.tsx";

export async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    notify("bad", "The browser did not allow copying.", text);
    return false;
  }
}

export function CopyButton({ text, label = "Copy", quiet = true }: { text: string; label?: string; quiet?: boolean }): JSX.Element {
  const [isDone, setDone] = useState(false);
  const onClick = async (): Promise<void> => {
    if (!(await copy(text))) return;
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button type="button" class="button plain small" title={label} aria-label={quiet ? label : undefined} onClick={() => void onClick()}>
      <Icon name={isDone ? "check" : "copy"} />
      {!quiet && (isDone ? "Copied" : label)}
    </button>
  );
}

/** `$ ork retry 7f3k` with a copy button. */
export function CommandLine({ command }: { command: string }): JSX.Element {
  return (
    <span class="command">
      <code><span class="dim" aria-hidden="true">$ </span>{command}</code>
      <CopyButton text={command} label="Copy the command" />
    </span>
  );
}

/** An id or other text in the code font, with a copy button. */
export function Copyable({ text, shown }: { text: string; shown?: string }): JSX.Element {
  return (
    <span class="copyable">
      <code title={text}>{shown ?? text}</code>
      <CopyButton text={text} label={`Copy ${text}`} />
    </span>
  );
}

/** Text with `commands` in backticks as code. */
export function Prose({ text }: { text: string }): JSX.Element {
  return <>{text.split("`").map((part, place) => (place % 2 ? <code key={place}>{part}</code> : part))}</>;
}
