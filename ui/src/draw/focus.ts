/** The part of a large graph that is worth a look: some tasks, their neighbours, and how many others are left out. */

import { lists } from "./layering.ts";

export interface Focus {
  /** The nodes that are shown, in ascending order. */
  shown: Uint32Array;
  /** For each shown node: how many direct upstream and downstream nodes are not shown. */
  hiddenUp: Uint32Array;
  hiddenDown: Uint32Array;
  /** Whether there was no room for some of the wanted nodes. */
  isCut: boolean;
}

/** Above this many tasks, a graph is shown in part. */
export const WHOLE_LIMIT = 150;
const STEPS = 2;
/** Of the room, at most so much is for the seeds, and for them and their neighbours. */
const SEED_SHARE = 0.5;
const NEAR_SHARE = 0.75;

/**
 * `seeds` are shown first, the most important at the front, then their neighbours up to two steps away, then the nodes `along` a
 * path from its end, while there is room. `opened` are nodes whose direct neighbours are all shown, whatever the room.
 */
export function focusOn(size: number, from: Uint32Array, to: Uint32Array, seeds: readonly number[], along: readonly number[] = [], opened: readonly number[] = [], limit = WHOLE_LIMIT): Focus {
  const [down, up] = [lists(size, from, to), lists(size, to, from)];
  const isShown = new Uint8Array(size);
  let count = 0;
  let isCut = false;
  const show = (node: number, room: number): boolean => {
    if (isShown[node]) return false;
    if (count >= room) { isCut = true; return false; }
    isShown[node] = 1;
    count += 1;
    return true;
  };
  let ring = seeds.filter((node) => show(node, limit * SEED_SHARE));
  for (let step = 0; step < STEPS; step += 1) {
    ring = ring.flatMap((node) => [...up.of(node), ...down.of(node)]).filter((node) => show(node, limit * NEAR_SHARE));
  }
  for (const node of [...along].reverse()) show(node, limit);
  for (const node of opened) {
    isShown[node] = 1;
    for (const other of [...up.of(node), ...down.of(node)]) isShown[other] = 1;
  }
  const shown = Uint32Array.from(isShown.keys()).filter((node) => isShown[node]);
  const hidden = (ends: Uint32Array): number => ends.reduce((sum, node) => sum + (isShown[node] ? 0 : 1), 0);
  return { shown, hiddenUp: shown.map((node) => hidden(up.of(node))), hiddenDown: shown.map((node) => hidden(down.of(node))), isCut };
}

/** The layers of some nodes in the whole graph, without those that none of them is in. */
export function layersAmong(layer: Uint32Array, nodes: Uint32Array): Uint32Array {
  const used = [...new Set(nodes.map((node) => layer[node] ?? 0))].sort((a, b) => a - b);
  const place = new Map(used.map((each, at) => [each, at]));
  return nodes.map((node) => place.get(layer[node] ?? 0) ?? 0);
}

/** The edges between some of the nodes, numbered by their places among them. */
export function edgesBetween(size: number, from: Uint32Array, to: Uint32Array, nodes: Uint32Array): { from: Uint32Array; to: Uint32Array } {
  const place = new Int32Array(size).fill(-1);
  nodes.forEach((node, at) => { place[node] = at; });
  const [a, b]: [number[], number[]] = [[], []];
  for (let edge = 0; edge < from.length; edge += 1) {
    const [start, end] = [place[from[edge] ?? 0] ?? -1, place[to[edge] ?? 0] ?? -1];
    if (start >= 0 && end >= 0) { a.push(start); b.push(end); }
  }
  return { from: Uint32Array.from(a), to: Uint32Array.from(b) };
}
