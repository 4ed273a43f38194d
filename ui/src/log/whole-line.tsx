/** A long line, in parts. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { useLoad } from "../data/read.ts";
import { CopyButton } from "../parts/command.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Loaded } from "../parts/page.tsx";
import { bytes } from "../words.ts";
import { spans } from "./ansi.ts";
import type { Line } from "./lines.ts";
import type { LogModel } from "./model.ts";

const PART = 32 * 1024;

export function WholeLine({ model, line, number, onClose }: { model: LogModel; line: Line; number: number | null; onClose: () => void }): JSX.Element {
  const [part, setPart] = useState(0);
  const parts = Math.max(1, Math.ceil(line.length / PART));
  const start = part * PART;
  const length = Math.min(PART, line.length - start);
  const read = useLoad(`part ${line.offset} ${part}`, async () => new TextDecoder().decode(await model.piece(line.offset + start, length)));
  return (
    <Dialog
      wide
      title={number === null ? "A long line" : `Line ${number.toLocaleString("en-US")}`}
      onClose={onClose}
      footer={
        <>
          <span>Bytes {start.toLocaleString("en-US")} to {(start + length).toLocaleString("en-US")} of {bytes(line.length)}</span>
          <span class="push" />
          {read.data.value !== undefined && <CopyButton text={read.data.value} label="Copy this part" quiet={false} />}
          <button type="button" class="button" disabled={part === 0} onClick={() => setPart(part - 1)}>Previous</button>
          <button type="button" class="button" disabled={part >= parts - 1} onClick={() => setPart(part + 1)}>Next</button>
        </>
      }
    >
      <Loaded read={read} what="the line">{(text) => <pre class="whole-line" tabIndex={0} aria-label="Part of the line">{spans(text).map((span, key) => <span key={key} class={span.look || undefined}>{span.text}</span>)}</pre>}</Loaded>
    </Dialog>
  );
}
