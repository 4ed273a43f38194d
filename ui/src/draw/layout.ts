/** Layouts of graphs from a worker. */

import { useEffect, useState } from "preact/hooks";
import { newWorker } from "../data/worker.ts";
import { type Edges, type Layout, layOut } from "./layering.ts";

/** Below this many nodes, a worker takes longer to start than the layout itself. */
const HERE_BELOW = 200;

let worker: Worker | null = null;
let lastId = 0;

/** The layout of a graph; undefined until it is there. Give the same object for the same graph. */
export function useLayout(edges: Edges | null): Layout | undefined {
  const [done, setDone] = useState<{ of: Edges; layout: Layout }>();
  useEffect(() => {
    if (!edges) return undefined;
    if (edges.size < HERE_BELOW) {
      setDone({ of: edges, layout: layOut(edges) });
      return undefined;
    }
    return layOutBeside(edges, (layout) => setDone({ of: edges, layout }));
  }, [edges]);
  return done && done.of === edges ? done.layout : undefined;
}

/** Calls back with the layout, unless the returned function was called before. */
function layOutBeside(edges: Edges, then: (layout: Layout) => void): () => void {
  worker ??= newWorker("layout");
  const id = ++lastId;
  const target = worker;
  const listen = (event: MessageEvent<{ id: number; layout: Layout }>): void => {
    if (event.data.id !== id) return;
    target.removeEventListener("message", listen);
    then(event.data.layout);
  };
  target.addEventListener("message", listen);
  target.postMessage({ id, ...edges });
  return () => target.removeEventListener("message", listen);
}
