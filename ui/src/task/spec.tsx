/** The task as its workflow defines it, in the version that the run uses. */

import type { JSX } from "preact";
import type { Task } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { Empty } from "../parts/empty.tsx";
import { Loaded } from "../parts/page.tsx";
import { href, path } from "../router.ts";
import { Tree } from "./tree.tsx";

export function Spec({ version, workflow, task }: { version: string; workflow: string; task: Task }): JSX.Element {
  const read = useRead("/versions/{version}", { version }, { seconds: 30 });
  return (
    <Loaded read={read} what="the definition" gone="This version is not kept any more">
      {(found) => {
        const spec = specOf(found.definition, task.name);
        return spec ? (
          <>
            <p class="spec-head dim">version <code title={version}>{version.slice(0, 8)}</code> of <a href={href(`${path("workflows", workflow)}?view=versions`)}>{workflow}</a>{found.source && <> · <code>{found.source}</code></>}</p>
            <Tree value={spec} label={`Definition of ${task.name}`} depth={3} />
          </>
        ) : <Empty title="The task is not in this version" />;
      }}
    </Loaded>
  );
}

function specOf(definition: Record<string, unknown>, name: string): unknown {
  const tasks = definition["tasks"];
  const found: unknown = Array.isArray(tasks) ? tasks.find((each: unknown) => (each as { name?: unknown } | null)?.name === name) : undefined;
  return found === undefined ? undefined : readable(found);
}

/** The compiled form in words of a workflow file: `{const: 1}` is `1`, `{ref: [tasks, a, output]}` is `a.output`. */
export function readable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(readable);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value);
  const [key, inner] = entries[0] ?? [];
  if (entries.length === 1 && key === "const") return inner;
  if (entries.length === 1 && key === "ref" && Array.isArray(inner)) return `{ref: ${inner.join(".")}}`;
  return Object.fromEntries(entries.map(([name, each]) => [name, name === "inputs" && Array.isArray(each) ? Object.fromEntries(each.map((pair: unknown) => (Array.isArray(pair) ? [String(pair[0]), readable(pair[1])] : [String(pair), null]))) : readable(each)]));
}
