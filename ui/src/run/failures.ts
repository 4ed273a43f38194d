/** Failures with the same message, but for numbers and ids, are one problem. */

import type { TaskFailure } from "../api.d.ts";

export interface FailureGroup {
  /** The message; what differs between its failures is `…`. */
  message: string;
  failures: TaskFailure[];
}

/** The largest group first. */
export function groupFailures(failures: readonly TaskFailure[]): FailureGroup[] {
  const groups = new Map<string, TaskFailure[]>();
  for (const failure of failures) {
    const key = `${failure.name}\n${pattern(messageOf(failure))}`;
    const found = groups.get(key);
    if (found) found.push(failure);
    else groups.set(key, [failure]);
  }
  return [...groups.values()]
    .map((members) => ({ message: common(members.map(messageOf)), failures: members }))
    .sort((a, b) => b.failures.length - a.failures.length);
}

export function messageOf(failure: TaskFailure): string {
  const message = failure.failure?.message.trim().split("\n", 1)[0];
  return message || (failure.exit_code == null ? "failed without a message" : `exit code ${failure.exit_code}`);
}

// An id: hexadecimal with dashes, or letters and digits mixed, of at least eight characters. Then every number.
const VARYING = /\b(?=[\w-]*\d)[0-9a-fA-F]{8,}(?:-[0-9a-fA-F]{4,})*\b|\b(?=\w*\d)(?=\w*[a-zA-Z])\w{8,}\b|\d+(?:[.,:]\d+)*/g;

/** The message without digits and ids. */
export function pattern(message: string): string {
  return message.replace(VARYING, "#");
}

/** The first message, with `…` where another one has another number or id. */
function common(messages: readonly string[]): string {
  const first = messages[0] ?? "";
  const parts = messages.map((message) => message.match(VARYING) ?? []);
  let place = -1;
  return first.replace(VARYING, (found) => {
    place += 1;
    return parts.every((each) => each[place] === found) ? found : "…";
  });
}
