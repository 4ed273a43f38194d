/** An error code of Ork, with its explanation on demand. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useRead } from "../data/read.ts";
import { CommandLine, Prose } from "./command.tsx";
import { Loaded } from "./page.tsx";

/** `ORK201 ▸`: a click shows what `ork explain ORK201` prints. */
export function ErrorCode({ code }: { code: string }): JSX.Element {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="error-code" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary><code>{code}</code></summary>
      {isOpen && <Explanation code={code} />}
    </details>
  );
}

/** What `ork explain` prints. */
export function Explanation({ code }: { code: string }): JSX.Element {
  const read = useRead("/codes/{code}", { code });
  return (
    <Loaded read={read} what="the explanation">
      {({ title, why, wrong, right }) => (
        <div class="explanation">
          <b>{title}</b>
          <p><Prose text={why} /></p>
          {wrong && <><span class="dim">Wrong</span><pre>{wrong}</pre></>}
          {right && <><span class="dim">{wrong ? "Right" : "Do"}</span><pre>{right}</pre></>}
          <CommandLine command={`ork explain ${code}`} />
        </div>
      )}
    </Loaded>
  );
}
