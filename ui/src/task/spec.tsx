/** The task as its workflow defines it, in the version that the run uses. */

import type { JSX } from "preact";
import type { Task } from "../api.d.ts";
import { useRead } from "../data/read.ts";
import { CopyButton } from "../parts/command.tsx";
import { Empty } from "../parts/empty.tsx";
import { Loaded } from "../parts/page.tsx";
import { href, path } from "../router.ts";
import { readable, specOf, yaml } from "./definition.ts";

export function Spec({ version, workflow, task }: { version: string; workflow: string; task: Task }): JSX.Element {
  const read = useRead("/versions/{version}", { version }, { seconds: 30 });
  return (
    <Loaded read={read} what="the definition" gone="This version is not kept any more">
      {(found) => {
        const spec = specOf(found.definition, task.name);
        if (spec === undefined) return <Empty title="The task is not in this version" />;
        const text = lines(readable(spec));
        return (
          <>
            <p class="spec-head dim">Version <code title={version}>{version.slice(0, 8)}</code> of <a class="link" href={href(`${path("workflows", workflow)}?view=versions`)}>{workflow}</a>{found.source && <>, from <code>{found.source}</code></>}</p>
            <div class="spec-text"><CopyButton text={text} label="Copy the definition" /><pre tabIndex={0} aria-label={`Definition of ${task.name}`}>{text}</pre></div>
          </>
        );
      }}
    </Loaded>
  );
}

/** One key in each line, also where all would fit into one. */
function lines(spec: unknown): string {
  if (typeof spec !== "object" || spec === null) return yaml(spec);
  return Object.entries(spec).map(([key, value]) => yaml({ [key]: value }).replace(/^\{(.*)\}$/s, "$1")).join("\n");
}
