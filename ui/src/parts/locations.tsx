/** Code locations, with the errors of their files at their place. */

import type { JSX } from "preact";
import type { Location } from "../api.d.ts";
import { type PlacedError, placedError, placedErrors } from "../data/places.ts";
import { useRead } from "../data/read.ts";
import { source } from "../data/session.ts";
import { href, path } from "../router.ts";
import { argument, count } from "../words.ts";
import { Action } from "./action.tsx";
import { ErrorCode } from "./code.tsx";
import { Prose } from "./command.tsx";
import { Loaded, Section } from "./page.tsx";
import { State } from "./state.tsx";
import { Ago } from "./time.tsx";

/** A section; nothing if the installation has no locations. */
export function Locations(): JSX.Element | null {
  const read = useRead("/locations", { limit: 1000 }, { every: 15 });
  if (read.data.value?.locations.length === 0) return null;
  return (
    <Section title="Locations" aside="folders and images that workflows come from">
      <Loaded read={read} what="the locations">
        {({ locations }) => <ul class="list locations">{locations.map((each) => <Row of={each} key={each.name} reload={read.reload} />)}</ul>}
      </Loaded>
    </Section>
  );
}

const STATES = { ok: "success", failed: "failed", looking: "running", new: "pending" } as const;

function Row({ of, reload }: { of: Location; reload: () => void }): JSX.Element {
  return (
    <li>
      <div class="location-head">
        <State of={STATES[of.status]} quiet />
        <b>{of.name}</b>
        <span class="list-text">{of.source} · {count(of.workflows.length, "workflow")}{of.vanished.length > 0 && `, ${of.vanished.length} gone`} · scanned <Ago at={of.looked_at} /> · next <Ago at={of.next_refresh} /></span>
        <span class="list-end"><Action label="Refresh" small icon="retry" role="operator" command={`ork locations refresh ${argument(of.name)}`} run={() => source.act("POST /locations/{name}/refresh", { name: of.name })} done={`${of.name} is scanned soon`} onDone={reload} /></span>
      </div>
      {of.workflows.length > 0 && <p class="location-flows">{of.workflows.map((name) => <a key={name} class="link" href={href(path("workflows", name))}>{name}</a>)}</p>}
      {of.error && <Errors of={of} />}
    </li>
  );
}

function Errors({ of }: { of: Location }): JSX.Element {
  const output = of.error?.output ?? "";
  const list = placedErrors(output);
  const shown = list ?? [placedError(of.error?.message ?? "")];
  return (
    <div class="location-errors">
      {shown.map((each, place) => <Place key={place} of={each} other={list ? null : (of.error?.code ?? null)} />)}
      {!list && output && <pre class="log">{output}</pre>}
      {of.digest && <p class="dim">The last valid version stays in use.</p>}
    </div>
  );
}

function Place({ of, other }: { of: PlacedError; other: string | null }): JSX.Element {
  const code = of.code ?? other;
  return (
    <div class="placed">
      <p>{of.file && <code class="placed-file">{of.file}{of.line !== null && `:${of.line}${of.column !== null ? `:${of.column}` : ""}`}</code>} <Prose text={of.message} /></p>
      {code && <ErrorCode code={code} />}
    </div>
  );
}
