/** Lays out a graph beside the page, which stays free for the person who waits. */

import { type Edges, layOut } from "./layering.ts";

addEventListener("message", (event: MessageEvent<Edges & { id: number }>) => {
  const { id, ...edges } = event.data;
  postMessage({ id, layout: layOut(edges) });
});
