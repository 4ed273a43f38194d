/** Where the boxes of a small graph are: layers from left to right, each near the middle of what it comes after. */

import { layersOf } from "../definition.ts";

export const NODE_WIDTH = 190;
export const NODE_HEIGHT = 42;
const GAP_X = 56;
const GAP_Y = 16;
const EDGE = 8;

interface Drawn {
  name: string;
  dependsOn: readonly string[];
}

export interface Layout<T> {
  nodes: { task: T; x: number; y: number }[];
  edges: { from: string; to: string; path: string }[];
  width: number;
  height: number;
}

export function placed<T extends Drawn>(tasks: readonly T[]): Layout<T> {
  const layers = layersOf(tasks.map((task) => ({ name: task.name, dependsOn: [...task.dependsOn] })));
  const columns: T[][] = [];
  for (const task of tasks) (columns[layers.get(task.name) ?? 0] ??= []).push(task);
  const tallest = Math.max(1, ...columns.map((column) => column?.length ?? 0));
  const height = tallest * (NODE_HEIGHT + GAP_Y) - GAP_Y + 2 * EDGE;
  const places = new Map<string, { x: number; y: number }>();
  for (const [number, column] of columns.entries()) {
    const ordered = number === 0 ? (column ?? []) : [...(column ?? [])].sort((a, b) => middle(a, places) - middle(b, places));
    const own = ordered.length * (NODE_HEIGHT + GAP_Y) - GAP_Y;
    for (const [place, task] of ordered.entries()) places.set(task.name, { x: EDGE + number * (NODE_WIDTH + GAP_X), y: (height - own) / 2 + place * (NODE_HEIGHT + GAP_Y) });
  }
  const nodes = tasks.map((task) => ({ task, ...(places.get(task.name) ?? { x: 0, y: 0 }) }));
  const edges = tasks.flatMap((task) => task.dependsOn.filter((name) => places.has(name)).map((from) => ({ from, to: task.name, path: curve(places.get(from) ?? { x: 0, y: 0 }, places.get(task.name) ?? { x: 0, y: 0 }) })));
  return { nodes, edges, width: columns.length * (NODE_WIDTH + GAP_X) - GAP_X + 2 * EDGE, height };
}

function middle(task: Drawn, places: ReadonlyMap<string, { y: number }>): number {
  const known = task.dependsOn.map((name) => places.get(name)?.y).filter((y) => y !== undefined);
  return known.length === 0 ? 0 : known.reduce((total, y) => total + y, 0) / known.length;
}

function curve(from: { x: number; y: number }, to: { x: number; y: number }): string {
  const [x1, y1, x2, y2] = [from.x + NODE_WIDTH, from.y + NODE_HEIGHT / 2, to.x, to.y + NODE_HEIGHT / 2];
  const bend = Math.max(24, (x2 - x1) / 2);
  return `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`;
}
