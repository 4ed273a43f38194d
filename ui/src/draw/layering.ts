/** Places the nodes of a directed graph in layers from left to right. */

export interface Edges {
  /** The number of nodes. */
  size: number;
  /** `from[i]` → `to[i]`. */
  from: Uint32Array;
  to: Uint32Array;
  /** The layer of each node, if it is given; edges lead to a later layer. */
  layer?: Uint32Array | undefined;
}

export interface Layout {
  /** The layer of each node. */
  layer: Uint32Array;
  /** The place in its column, in units of one node. May be a fraction. */
  row: Float64Array;
  layers: number;
  /** The largest row. */
  rows: number;
  /** The inner points of edges that pass layers, as rows of the layers between: `bends[bendStart[i]] … bends[bendStart[i + 1]]`. */
  bends: Float64Array;
  bendStart: Uint32Array;
}

const MOST_BENDS = 60_000;

export function layOut(edges: Edges): Layout {
  const layer = edges.layer ?? layersOf(edges);
  const graph = withBends(edges, layer);
  const columns = orderedColumns(graph);
  const row = rowsOf(graph, columns);
  return result(edges, layer, graph, row);
}

/** The longest path to each node; sources stand right before the first node that needs them. Nodes of a cycle stay in layer 0. */
export function layersOf({ size, from, to }: Edges): Uint32Array {
  const layer = new Uint32Array(size);
  const { order } = sorted(size, from, to);
  const out = lists(size, from, to);
  for (const node of order) for (const next of out.of(node)) layer[next] = Math.max(layer[next] ?? 0, (layer[node] ?? 0) + 1);
  const hasUpstream = new Uint8Array(size);
  for (const node of to) hasUpstream[node] = 1;
  for (const node of order) {
    if (hasUpstream[node]) continue;
    let nearest = Infinity;
    for (const next of out.of(node)) nearest = Math.min(nearest, layer[next] ?? 0);
    if (nearest !== Infinity && nearest > 0) layer[node] = nearest - 1;
  }
  return layer;
}

/** Nodes so that each comes after those it depends on; nodes of a cycle at the end. */
function sorted(size: number, from: Uint32Array, to: Uint32Array): { order: Uint32Array } {
  const open = new Uint32Array(size);
  for (const node of to) open[node] = (open[node] ?? 0) + 1;
  const out = lists(size, from, to);
  const order = new Uint32Array(size);
  const isDone = new Uint8Array(size);
  let length = 0;
  for (let node = 0; node < size; node += 1) if (open[node] === 0) { order[length++] = node; isDone[node] = 1; }
  for (let place = 0; place < length; place += 1) {
    for (const next of out.of(order[place] ?? 0)) {
      open[next] = (open[next] ?? 1) - 1;
      if (open[next] === 0) { order[length++] = next; isDone[next] = 1; }
    }
  }
  for (let node = 0; node < size; node += 1) if (!isDone[node]) order[length++] = node;
  return { order };
}

/** For each node the nodes at the other end of its edges, in one array. */
class Lists {
  constructor(private readonly start: Uint32Array, private readonly ends: Uint32Array) {}
  of(node: number): Uint32Array {
    return this.ends.subarray(this.start[node], this.start[node + 1]);
  }
}

export function lists(size: number, from: Uint32Array, to: Uint32Array): Lists {
  const start = new Uint32Array(size + 1);
  for (const node of from) start[node + 1] = (start[node + 1] ?? 0) + 1;
  for (let node = 0; node < size; node += 1) start[node + 1] = (start[node + 1] ?? 0) + (start[node] ?? 0);
  const next = start.slice();
  const ends = new Uint32Array(from.length);
  for (let edge = 0; edge < from.length; edge += 1) {
    const at = next[from[edge] ?? 0] ?? 0;
    ends[at] = to[edge] ?? 0;
    next[from[edge] ?? 0] = at + 1;
  }
  return new Lists(start, ends);
}

interface Graph {
  size: number;
  layer: Uint32Array;
  up: Lists;
  down: Lists;
  /** For each edge its first inner node; they follow each other. 0 if it has none. */
  firstBend: Uint32Array;
}

/** The graph with an inner node on each layer that an edge passes, so that edges avoid nodes. Very large graphs go without. */
function withBends({ size, from, to }: Edges, layer: Uint32Array): Graph {
  let bends = 0;
  for (let edge = 0; edge < from.length; edge += 1) bends += Math.max(0, span(layer, from, to, edge) - 1);
  const isBent = bends > 0 && bends <= MOST_BENDS;
  const total = size + (isBent ? bends : 0);
  const allLayers = new Uint32Array(total);
  allLayers.set(layer);
  const firstBend = new Uint32Array(from.length);
  const [sources, targets]: [number[], number[]] = [[], []];
  let next = size;
  for (let edge = 0; edge < from.length; edge += 1) {
    let at = from[edge] ?? 0;
    const target = to[edge] ?? 0;
    if (isBent) {
      for (let step = 1; step < span(layer, from, to, edge); step += 1) {
        if (step === 1) firstBend[edge] = next;
        allLayers[next] = (layer[from[edge] ?? 0] ?? 0) + step;
        sources.push(at);
        targets.push(next);
        at = next++;
      }
    }
    sources.push(at);
    targets.push(target);
  }
  const [a, b] = [Uint32Array.from(sources), Uint32Array.from(targets)];
  return { size: total, layer: allLayers, up: lists(total, b, a), down: lists(total, a, b), firstBend };
}

function span(layer: Uint32Array, from: Uint32Array, to: Uint32Array, edge: number): number {
  return (layer[to[edge] ?? 0] ?? 0) - (layer[from[edge] ?? 0] ?? 0);
}

/** The nodes of each layer, ordered so that few edges cross: each goes to the mean place of its neighbours, back and forth. */
function orderedColumns(graph: Graph): number[][] {
  const columns: number[][] = [];
  for (let node = 0; node < graph.size; node += 1) (columns[graph.layer[node] ?? 0] ??= []).push(node);
  for (let place = 0; place < columns.length; place += 1) columns[place] ??= [];
  const at = new Float64Array(graph.size);
  const number = (column: number[]): void => column.forEach((node, place) => { at[node] = place; });
  columns.forEach(number);
  const sweeps = graph.size > 20_000 ? 2 : graph.size > 3000 ? 4 : 12;
  const wanted = new Float64Array(graph.size);
  for (let sweep = 0; sweep < sweeps; sweep += 1) {
    const isForward = sweep % 2 === 0;
    for (let step = 0; step < columns.length; step += 1) {
      const column = columns[isForward ? step : columns.length - 1 - step] ?? [];
      for (const node of column) wanted[node] = mean(isForward ? graph.up.of(node) : graph.down.of(node), at, at[node] ?? 0);
      column.sort((a, b) => (wanted[a] ?? 0) - (wanted[b] ?? 0) || (at[a] ?? 0) - (at[b] ?? 0));
      number(column);
    }
  }
  return columns;
}

function mean(neighbours: Uint32Array, of: Float64Array, otherwise: number): number {
  if (neighbours.length === 0) return otherwise;
  let sum = 0;
  for (const node of neighbours) sum += of[node] ?? 0;
  return sum / neighbours.length;
}

/** Rows near those of the neighbours, without two nodes of a layer closer than one row. */
function rowsOf(graph: Graph, columns: number[][]): Float64Array {
  const row = new Float64Array(graph.size);
  const highest = Math.max(1, ...columns.map((column) => column.length));
  for (const column of columns) column.forEach((node, place) => { row[node] = place + (highest - column.length) / 2; });
  const sweeps = graph.size > 20_000 ? 2 : 8;
  for (let sweep = 0; sweep < sweeps; sweep += 1) {
    const isForward = sweep % 2 === 0;
    for (let step = 0; step < columns.length; step += 1) {
      const column = columns[isForward ? step : columns.length - 1 - step] ?? [];
      settle(column, row, Float64Array.from(column, (node) => mean(isForward ? graph.up.of(node) : graph.down.of(node), row, row[node] ?? 0)));
    }
  }
  let least = Infinity;
  for (const value of row) least = Math.min(least, value);
  for (let node = 0; node < row.length; node += 1) row[node] = (row[node] ?? 0) - (least === Infinity ? 0 : least);
  return row;
}

/** The rows of a column in its order, at least one apart, as near to the wanted ones as two passes get. */
function settle(column: number[], row: Float64Array, wanted: Float64Array): void {
  const [low, high] = [wanted.slice(), wanted.slice()];
  for (let place = 1; place < column.length; place += 1) low[place] = Math.max(low[place] ?? 0, (low[place - 1] ?? 0) + 1);
  for (let place = column.length - 2; place >= 0; place -= 1) high[place] = Math.min(high[place] ?? 0, (high[place + 1] ?? 0) - 1);
  column.forEach((node, place) => { row[node] = ((low[place] ?? 0) + (high[place] ?? 0)) / 2; });
}

function result(edges: Edges, layer: Uint32Array, graph: Graph, row: Float64Array): Layout {
  const bendStart = new Uint32Array(edges.from.length + 1);
  const bends: number[] = [];
  for (let edge = 0; edge < edges.from.length; edge += 1) {
    const first = graph.firstBend[edge] ?? 0;
    if (first) for (let step = 0; step < span(layer, edges.from, edges.to, edge) - 1; step += 1) bends.push(row[first + step] ?? 0);
    bendStart[edge + 1] = bends.length;
  }
  let [layers, rows] = [0, 0];
  for (const each of layer) layers = Math.max(layers, each + 1);
  for (const each of row) rows = Math.max(rows, each);
  return { layer, row: row.slice(0, edges.size), layers, rows, bends: Float64Array.from(bends), bendStart };
}
