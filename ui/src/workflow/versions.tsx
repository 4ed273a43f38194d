/** Versions of a workflow, and what changed between two of them. */

import type { JSX } from "preact";
import type { VersionEntry } from "../api.d.ts";
import { useLoad, useRead } from "../data/read.ts";
import { changesBetween } from "../definition.ts";
import { Copyable } from "../parts/command.tsx";
import { Empty, Partial } from "../parts/empty.tsx";
import { Loaded, Section } from "../parts/page.tsx";
import { Ago } from "../parts/time.tsx";
import { currentQuery, setQuery } from "../router.ts";

const SHOWN = 100;

export function Versions({ name, current }: { name: string; current: string }): JSX.Element {
  const read = useRead("/workflows/{name}/versions", { name, limit: SHOWN });
  return (
    <Loaded read={read} what="the versions">
      {({ versions, cursor }) => {
        if (versions.length === 0) return <Empty title="There is no version" command="ork deploy workflow.yaml" />;
        const b = currentQuery.value.get("b") ?? current;
        const place = versions.findIndex((each) => each.id === b);
        const a = currentQuery.value.get("a") ?? versions[place + 1]?.id ?? null;
        return (
          <div class="versions">
            <div>
              <List versions={versions} current={current} a={a} b={b} />
              {cursor && <Partial shown={versions.length} what="versions" />}
            </div>
            <Difference a={a} b={b} />
          </div>
        );
      }}
    </Loaded>
  );
}

function List({ versions, current, a, b }: { versions: readonly VersionEntry[]; current: string; a: string | null; b: string }): JSX.Element {
  return (
    <Section title="Versions" aside="compare two">
      <div class="list version-list" role="table" aria-label="Versions">
        {versions.map((each) => (
          <div class="version" role="row" key={each.id}>
            <span class="version-picks" role="cell">
              <label title="The older one"><input type="radio" name="a" checked={each.id === a} aria-label={`Compare from ${each.id}`} onChange={() => setQuery({ a: each.id, b })} /></label>
              <label title="The newer one"><input type="radio" name="b" checked={each.id === b} aria-label={`Compare to ${each.id}`} onChange={() => setQuery({ a, b: each.id })} /></label>
            </span>
            <span role="cell"><Copyable text={each.id} shown={each.id.slice(0, 8)} />{each.id === current && <span class="tag">current</span>}</span>
            <span class="dim version-source" role="cell" title={each.source ?? undefined}>{each.source?.split("/").at(-1)}</span>
            <span class="dim" role="cell"><Ago at={each.saved_at} /></span>
          </div>
        ))}
      </div>
    </Section>
  );
}

function Difference({ a, b }: { a: string | null; b: string }): JSX.Element {
  const key = a === null || a === b ? null : `versions ${a} ${b}`;
  const read = useLoad(key, async (from, signal) => {
    const { before, after } = await from.get("/versions/{version}/diff/{other}", { version: a ?? "", other: b }, { signal });
    return { changes: changesBetween(before, after) };
  });
  if (key === null) return <Section title="What changed"><p class="dim">{a === b ? "Choose two different versions." : "This is the first version."}</p></Section>;
  return (
    <Section title="What changed" aside={<code>{a?.slice(0, 4)} → {b.slice(0, 4)}</code>}>
      <Loaded read={read} what="both versions">
        {({ changes }) =>
          changes.length === 0 ? <p class="dim">The definitions are equal: only files of the workflow differ.</p> : (
            <table class="changes">
              <thead><tr><th scope="col">What</th><th scope="col">Before</th><th scope="col">After</th></tr></thead>
              <tbody>
                {changes.map((each) => (
                  <tr key={each.path}>
                    <th scope="row"><code>{each.path}</code></th>
                    <td class={each.before === null ? "dim" : "was"}>{each.before ?? "not there"}</td>
                    <td class={each.after === null ? "dim" : "is"}>{each.after ?? "removed"}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          )
        }
      </Loaded>
    </Section>
  );
}

