/** An error: what happened, what to do, and the code with the command that explains it. Never a stack. */

import type { JSX } from "preact";
import type { Problem } from "../data/problem.ts";
import { session } from "../data/session.ts";
import { CommandLine, Prose } from "./command.tsx";
import { Icon, type IconName } from "./icons.tsx";

const ICONS: Partial<Record<Problem["kind"], IconName>> = { forbidden: "lock", "signed out": "lock", disconnected: "plug", slow: "schedules", gone: "search" };

export function ProblemView({ problem, again, gone }: { problem: Problem; again?: () => void; gone?: string }): JSX.Element {
  const user = session.value;
  const title = problem.kind === "gone" && gone ? gone : problem.title;
  return (
    <section class="blank" role="alert">
      <span class="blank-icon"><Icon name={ICONS[problem.kind] ?? "warn"} /></span>
      <h2>{title}</h2>
      {problem.detail && title === problem.title && <p><Prose text={problem.detail} /></p>}
      {problem.kind === "forbidden" && user && <p>You are signed in as {user.name} with the role {user.role}. Ask an admin for a token with a higher role.</p>}
      {problem.hint && <p><Prose text={problem.hint} /></p>}
      <div class="blank-actions">
        {again && problem.kind !== "forbidden" && <button type="button" class="button" onClick={again}>Try again</button>}
        {problem.code && <CommandLine command={`ork explain ${problem.code}`} />}
      </div>
    </section>
  );
}
