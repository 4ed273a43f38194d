/** The attempts of a task: when, where and how each ended. */

import type { ComponentChildren, JSX } from "preact";
import type { Attempt } from "../api.d.ts";
import { Copyable } from "../parts/command.tsx";
import { Empty } from "../parts/empty.tsx";
import { State } from "../parts/state.tsx";
import { Clock, Took } from "../parts/time.tsx";
import { exitWords } from "./failure.tsx";

interface TriesProps {
  attempts: readonly Attempt[];
  /** The number of the attempt that the other tabs show. */
  shown: number | undefined;
  hrefOf: (attempt: number) => string;
}

export function Tries({ attempts, shown, hrefOf }: TriesProps): JSX.Element {
  if (attempts.length === 0) return <Empty title="It has not been tried yet" icon="schedules" />;
  return (
    <ol class="tries" reversed>
      {[...attempts].reverse().map((each) => (
        <li key={each.attempt} aria-current={each.attempt === shown ? "true" : undefined}>
          <header>
            <a href={hrefOf(each.attempt)}>Try {each.attempt}</a>
            <State of={each.status} />
            <span class="push" />
            <span title="Time that it ran"><Took start={each.started_at} end={each.finished_at} /></span>
          </header>
          {each.error && <p class="tries-error">{each.error}</p>}
          <dl class="pairs">{facts(each).map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}</dl>
        </li>
      ))}
    </ol>
  );
}

function facts(attempt: Attempt): [string, ComponentChildren][] {
  const where = attempt.ran_in ?? {};
  const found: [string, ComponentChildren][] = [
    ["dispatched", <Clock at={attempt.dispatched_at} />],
    ["waited", <Took start={attempt.dispatched_at} end={attempt.started_at} />],
  ];
  if (attempt.exit_code !== null) found.push(["exit", exitWords(attempt.exit_code)]);
  found.push(["executor", <code>{attempt.executor}</code>]);
  if (attempt.pool) found.push(["pool", <code>{attempt.pool}</code>]);
  for (const [name, value] of Object.entries(where)) if (value !== null) found.push([name.replaceAll("_", " "), typeof value === "object" ? <code>{JSON.stringify(value)}</code> : <code>{String(value)}</code>]);
  if (attempt.external_name) found.push(["name", <Copyable text={attempt.external_name} />]);
  if (attempt.waits_for?.length) found.push(["waits for", attempt.waits_for.join(", ")]);
  if (attempt.closing) found.push(["being ended", attempt.closing.replaceAll("_", " ")]);
  for (const [name, value] of Object.entries(attempt.metrics ?? {})) found.push([name.replaceAll("_", " "), <span class="number">{Math.round(value * 1000) / 1000}</span>]);
  return found;
}
