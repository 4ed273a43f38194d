/** Says that schedulers are paused or drained: then nothing new starts. */

import type { JSX } from "preact";
import { useRead } from "../data/read.ts";
import { Ago } from "../parts/time.tsx";
import { href } from "../router.ts";

export function Controls(): JSX.Element | null {
  const controls = useRead("/controls", {}).data.value?.controls ?? [];
  if (controls.length === 0) return null;
  return (
    <>
      {controls.map((each) => (
        <div class="banner is-warning" role="status" key={each.target}>
          <span>
            {each.target === "*" ? "All schedulers are" : `The scheduler ${each.target} is`} {each.mode} by {each.by} since <Ago at={each.at} />{each.reason ? `: ${each.reason}` : ""}. Nothing new starts there.
          </span>
          <a class="button small" href={href("system")}>Look</a>
        </div>
      ))}
    </>
  );
}
