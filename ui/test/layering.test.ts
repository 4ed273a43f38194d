import assert from "node:assert/strict";
import { test } from "node:test";
import { edgesBetween, focusOn, layersAmong } from "../src/draw/focus.ts";
import { type Edges, layersOf, layOut } from "../src/draw/layering.ts";
import { treeOf, visibleItems } from "../src/draw/tree.ts";

const edges = (size: number, ...pairs: [number, number][]): Edges => ({ size, from: Uint32Array.from(pairs, ([from]) => from), to: Uint32Array.from(pairs, ([, to]) => to) });

/** Each node depends on two of the layer before. */
function deep(layers: number, columns: number): Edges {
  const pairs: [number, number][] = [];
  for (let node = columns; node < layers * columns; node += 1) {
    const [layer, place] = [Math.floor(node / columns), node % columns];
    pairs.push([node - columns, node], [(layer - 1) * columns + ((place + 7) % columns), node]);
  }
  return edges(layers * columns, ...pairs);
}

test("a node stands after everything it depends on, and a source right before what needs it", () => {
  // 0 → 1 → 2 → 3, and 4 → 3.
  assert.deepEqual([...layersOf(edges(5, [0, 1], [1, 2], [2, 3], [4, 3]))], [0, 1, 2, 3, 2]);
});

test("nodes of a layer do not overlap, and every edge leads to the right", () => {
  const graph = deep(20, 30);
  const { layer, row } = layOut(graph);
  const rows = new Map<number, number[]>();
  layer.forEach((each, node) => rows.set(each, [...(rows.get(each) ?? []), row[node] ?? 0]));
  for (const each of rows.values()) {
    each.sort((a, b) => a - b);
    for (let place = 1; place < each.length; place += 1) assert.ok((each[place] ?? 0) - (each[place - 1] ?? 0) > 0.999);
  }
  graph.from.forEach((from, edge) => assert.ok((layer[from] ?? 0) < (layer[graph.to[edge] ?? 0] ?? 0)));
});

test("edges over several layers have a bend on each layer between", () => {
  const { bendStart, bends } = layOut(edges(4, [0, 1], [1, 2], [2, 3], [0, 3]));
  assert.deepEqual([...bendStart], [0, 0, 0, 0, 2]);
  assert.equal(bends.length, 2);
});

test("a chain is a straight line, an empty graph and a cycle are no error", () => {
  assert.deepEqual([...layOut(edges(3, [0, 1], [1, 2])).row], [0, 0, 0]);
  assert.equal(layOut(edges(0)).layers, 0);
  assert.equal(layOut(edges(2, [0, 1], [1, 0])).layer.length, 2);
});

test("a graph of 20,000 tasks is laid out without a deep stack", () => {
  const { layers } = layOut(deep(284, 70));
  assert.equal(layers, 284);
});

test("the focus has the seeds, two steps around them, the end of the path, and counts what is hidden", () => {
  const graph = deep(20, 30);
  const seed = 10 * 30;
  const focus = focusOn(graph.size, graph.from, graph.to, [seed], [0, 570], [], 40);
  const shown = new Set(focus.shown);
  for (const node of [seed, seed - 30, seed + 30, seed - 60, seed + 60, 570, 0]) assert.ok(shown.has(node), String(node));
  assert.ok(focus.shown.length <= 40);
  const at = focus.shown.indexOf(570);
  assert.deepEqual([focus.hiddenUp[at], focus.hiddenDown[at]], [2, 0]);
  assert.equal(focus.isCut, false);
});

test("many seeds do not take all the room from their neighbours", () => {
  const graph = deep(20, 30);
  const focus = focusOn(graph.size, graph.from, graph.to, Array.from({ length: 300 }, (_, node) => node), [], [], 40);
  assert.equal(focus.isCut, true);
  assert.ok(focus.shown.length <= 40 && focus.shown.some((node) => node >= 20));
});

test("opened nodes show all their neighbours, whatever the room", () => {
  const graph = edges(101, ...Array.from({ length: 100 }, (_, node): [number, number] => [0, node + 1]));
  assert.equal(focusOn(graph.size, graph.from, graph.to, [0], [], [], 20).hiddenDown[0], 86);
  assert.equal(focusOn(graph.size, graph.from, graph.to, [0], [], [0], 20).shown.length, 101);
});

test("a part of a graph keeps its edges and the order of its layers", () => {
  const graph = edges(5, [0, 1], [1, 2], [2, 3], [3, 4]);
  const part = Uint32Array.of(0, 3, 4);
  const found = edgesBetween(5, graph.from, graph.to, part);
  assert.deepEqual([[...found.from], [...found.to]], [[1], [2]]);
  assert.deepEqual([...layersAmong(layersOf(graph), part)], [0, 1, 2]);
});

test("the tree has each task once, below the last one it waited for", () => {
  const tree = treeOf(edges(5, [0, 1], [0, 2], [1, 3], [0, 3], [3, 4]));
  assert.deepEqual(visibleItems(tree, new Set()), [0, 1, 3, 4, 2]);
  assert.deepEqual([...tree.depth], [0, 1, 1, 2, 3]);
  assert.deepEqual(visibleItems(tree, new Set([1])), [0, 1, 2]);
  assert.deepEqual([...tree.siblings], [1, 2, 2, 1, 1]);
});
