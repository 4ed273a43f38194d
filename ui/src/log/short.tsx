/** A few lines of a log around its first error, or its end. */

import type { JSX } from "preact";
import { useLoad } from "../data/read.ts";
import { Empty } from "../parts/empty.tsx";
import { Loaded } from "../parts/page.tsx";
import type { TaskId } from "../task/model.ts";

export function ShortLog({ id, attempt }: { id: TaskId; attempt: number | undefined; status?: string | undefined }): JSX.Element {
  const given = { run: id.run, name: id.task, index: id.index ?? 0, number: attempt ?? 1 };
  const read = useLoad(attempt === undefined ? null : `log ${JSON.stringify(given)}`, (source, signal) => source.bytes("/runs/{run}/tasks/{name}/{index}/attempts/{number}/log", given, -65536, undefined, { signal }));
  if (attempt === undefined) return <Empty title="It has not been tried yet, so there is no log" icon="schedules" />;
  return <Loaded read={read} what="the log">{(piece) => <pre class="log" tabIndex={0}>{new TextDecoder().decode(piece.bytes)}</pre>}</Loaded>;
}
