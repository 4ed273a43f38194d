/** A graph as a tree: each node stands below the upstream node with the longest way, the last it had to wait for. */

import { type Edges, layersOf } from "./layering.ts";

export interface Tree {
  /** -1 for a root. */
  parent: Int32Array;
  children: readonly (readonly number[])[];
  roots: readonly number[];
  depth: Uint32Array;
  /** The place among its siblings, and how many there are. */
  position: Uint32Array;
  siblings: Uint32Array;
}

export function treeOf(edges: Edges): Tree {
  const { size, from, to } = edges;
  const layer = layersOf(edges);
  const parent = new Int32Array(size).fill(-1);
  for (let edge = 0; edge < from.length; edge += 1) {
    const [up, node] = [from[edge] ?? 0, to[edge] ?? 0];
    const before = parent[node] ?? -1;
    // A parent in the same or a later layer exists only in a cycle, which would make the tree endless.
    if ((layer[up] ?? 0) < (layer[node] ?? 0) && (before < 0 || (layer[up] ?? 0) > (layer[before] ?? 0))) parent[node] = up;
  }
  const children: number[][] = Array.from({ length: size }, () => []);
  const roots: number[] = [];
  for (let node = 0; node < size; node += 1) ((parent[node] ?? -1) < 0 ? roots : (children[parent[node] ?? 0] as number[])).push(node);
  const [depth, position, siblings] = [new Uint32Array(size), new Uint32Array(size), new Uint32Array(size)];
  for (const list of [roots, ...children]) list.forEach((node, place) => { position[node] = place; siblings[node] = list.length; });
  const tree = { parent, children, roots, depth, position, siblings };
  for (const node of visibleItems(tree, new Set())) depth[node] = (parent[node] ?? -1) < 0 ? 0 : (depth[parent[node] ?? 0] ?? 0) + 1;
  return tree;
}

/** The nodes from top to bottom, without those below a closed one. */
export function visibleItems(tree: Tree, closed: ReadonlySet<number>): number[] {
  const found: number[] = [];
  const open = [...tree.roots].reverse();
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    found.push(node);
    const below = closed.has(node) ? [] : (tree.children[node] ?? []);
    for (let place = below.length - 1; place >= 0; place -= 1) open.push(below[place] ?? 0);
  }
  return found;
}
