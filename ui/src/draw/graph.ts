/** Draws a graph of tasks in layers, or a part of it. */

import { grouped, type StateKind } from "../words.ts";
import type { Drawing } from "./canvas.ts";
import type { Layout } from "./layering.ts";
import type { Palette } from "./palette.ts";
import { drawGlyph, fitted, plain } from "./pen.ts";

const WIDE = 160;
const HIGH = 36;
const COLUMN = WIDE + 72;
const ROW = HIGH + 18;

export interface GraphNodeLook {
  name: string;
  kind: StateKind;
  /** Instances by state; empty for a task without. */
  counts: readonly (readonly [StateKind, number])[];
  size: number;
}

export interface Picture {
  nodes: readonly GraphNodeLook[];
  from: Uint32Array;
  to: Uint32Array;
  layout: Layout;
  /** Direct neighbours that are not in the picture. */
  hiddenUp: Uint32Array;
  hiddenDown: Uint32Array;
  /** The place of each node on the critical path, from 1; 0 for others. */
  critical: Uint32Array;
}

/** What is seen: world coordinates of the left upper corner, and pixels for a unit. */
export interface Camera {
  x: number;
  y: number;
  scale: number;
}

export interface Box {
  x: number;
  y: number;
  width: number;
  height: number;
}

export type Hit = { node: number; part: "node" | "up" | "down" } | null;

export function boxOf(layout: Layout, node: number): Box {
  return { x: (layout.layer[node] ?? 0) * COLUMN, y: (layout.row[node] ?? 0) * ROW, width: WIDE, height: HIGH };
}

export function sizeOf(layout: Layout): { width: number; height: number } {
  return { width: Math.max(1, layout.layers) * COLUMN - (COLUMN - WIDE), height: layout.rows * ROW + HIGH };
}

/** The camera that shows everything, not larger than life. */
export function fitTo(layout: Layout, width: number, height: number): Camera {
  const size = sizeOf(layout);
  const scale = Math.min(1, (width - 96) / size.width, (height - 48) / size.height);
  return { scale, x: size.width / 2 - width / 2 / scale, y: size.height / 2 - height / 2 / scale };
}

/** The camera that has a node in the middle. */
export function centredOn(layout: Layout, node: number, scale: number, width: number, height: number): Camera {
  const box = boxOf(layout, node);
  return { scale, x: box.x + WIDE / 2 - width / 2 / scale, y: box.y + HIGH / 2 - height / 2 / scale };
}

/** The camera after zooming by a factor around a point of the screen. */
export function zoomed(camera: Camera, factor: number, x: number, y: number): Camera {
  const scale = Math.min(2.5, Math.max(0.01, camera.scale * factor));
  return { scale, x: camera.x + x / camera.scale - x / scale, y: camera.y + y / camera.scale - y / scale };
}

/** The node, or the stub of hidden neighbours, at a point of the screen. */
export function hitAt(picture: Picture, camera: Camera, x: number, y: number): Hit {
  const [atX, atY] = [x / camera.scale + camera.x, y / camera.scale + camera.y];
  for (let node = 0; node < picture.nodes.length; node += 1) {
    const box = boxOf(picture.layout, node);
    if (atY < box.y - 2 || atY > box.y + HIGH + 2) continue;
    if (atX >= box.x && atX <= box.x + WIDE) return { node, part: "node" };
    if (picture.hiddenUp[node] && atX >= box.x - STUB - 6 && atX < box.x) return { node, part: "up" };
    if (picture.hiddenDown[node] && atX > box.x + WIDE && atX <= box.x + WIDE + STUB + 6) return { node, part: "down" };
  }
  return null;
}

const STUB = 34;
/** Below this scale, names cannot be read: nodes are drawn as boxes only. */
const NAMES_FROM = 0.4;

export function drawGraph(pen: CanvasRenderingContext2D, drawing: Drawing, picture: Picture, camera: Camera, selected: number, cursor: number): void {
  const { width, height, palette } = drawing;
  pen.save();
  pen.scale(camera.scale, camera.scale);
  pen.translate(-camera.x, -camera.y);
  const view = { x: camera.x, y: camera.y, width: width / camera.scale, height: height / camera.scale };
  drawEdges(pen, palette, picture, camera, view, selected);
  const isSmall = camera.scale < NAMES_FROM;
  for (let node = 0; node < picture.nodes.length; node += 1) {
    const box = boxOf(picture.layout, node);
    if (box.x + WIDE + STUB < view.x || box.x - STUB > view.x + view.width || box.y + HIGH < view.y || box.y > view.y + view.height) continue;
    if (isSmall) drawDot(pen, palette, picture, node, box, node === selected);
    else drawNode(pen, palette, picture, node, box, node === selected, node === cursor);
  }
  pen.restore();
}

function drawEdges(pen: CanvasRenderingContext2D, palette: Palette, picture: Picture, camera: Camera, view: Box, selected: number): void {
  const { from, to, critical } = picture;
  const [plainEdges, strong, near] = [new Path2D(), new Path2D(), new Path2D()];
  const isSmall = camera.scale < NAMES_FROM;
  for (let edge = 0; edge < from.length; edge += 1) {
    const [a, b] = [from[edge] ?? 0, to[edge] ?? 0];
    const isCritical = Boolean(critical[a]) && critical[b] === (critical[a] ?? 0) + 1;
    const path = isCritical ? strong : a === selected || b === selected ? near : plainEdges;
    addEdge(path, picture, edge, a, b, view, isSmall);
  }
  pen.lineWidth = Math.max(1, 0.7 / camera.scale);
  pen.strokeStyle = palette.lineStrong;
  pen.stroke(plainEdges);
  pen.lineWidth = Math.max(1.6, 1 / camera.scale);
  pen.strokeStyle = palette.dim;
  pen.stroke(near);
  pen.lineWidth = Math.max(2.2, 1.4 / camera.scale);
  pen.strokeStyle = palette.ink;
  pen.stroke(strong);
}

function addEdge(path: Path2D, { layout }: Picture, edge: number, a: number, b: number, view: Box, isStraight: boolean): void {
  const [start, end] = [boxOf(layout, a), boxOf(layout, b)];
  if (end.x < view.x || start.x + WIDE > view.x + view.width) return;
  let [x, y] = [start.x + WIDE, start.y + HIGH / 2];
  path.moveTo(x, y);
  const line = (toX: number, toY: number): void => {
    if (isStraight) path.lineTo(toX, toY);
    else path.bezierCurveTo(x + (toX - x) / 2, y, x + (toX - x) / 2, toY, toX, toY);
    [x, y] = [toX, toY];
  };
  const first = layout.bendStart[edge] ?? 0;
  const count = (layout.bendStart[edge + 1] ?? 0) - first;
  for (let bend = 0; bend < count; bend += 1) {
    const row = (layout.bends[first + bend] ?? 0) * ROW + HIGH / 2;
    line(start.x + (bend + 1) * COLUMN, row);
    line(x + WIDE, row);
  }
  line(end.x, end.y + HIGH / 2);
}

function drawDot(pen: CanvasRenderingContext2D, palette: Palette, picture: Picture, node: number, box: Box, isSelected: boolean): void {
  const kind = picture.nodes[node]?.kind ?? "pending";
  const extra = kind === "failed" || kind === "running" ? 8 : 0;
  pen.fillStyle = palette.states[kind];
  pen.globalAlpha = kind === "success" ? 0.45 : 1;
  pen.fillRect(box.x - extra, box.y - extra, WIDE + 2 * extra, HIGH + 2 * extra);
  pen.globalAlpha = 1;
  if (!picture.critical[node] && !isSelected) return;
  pen.strokeStyle = isSelected ? palette.focus : palette.ink;
  pen.lineWidth = 8;
  pen.strokeRect(box.x, box.y, WIDE, HIGH);
}

function drawNode(pen: CanvasRenderingContext2D, palette: Palette, picture: Picture, node: number, box: Box, isSelected: boolean, isCursor: boolean): void {
  const look = picture.nodes[node];
  if (!look) return;
  pen.beginPath();
  pen.roundRect(box.x, box.y, WIDE, HIGH, 8);
  pen.fillStyle = isSelected ? palette.tintStrong : isCursor ? palette.tint : palette.surface;
  pen.fill();
  pen.lineWidth = isSelected ? 2 : picture.critical[node] ? 1.8 : 1.2;
  pen.strokeStyle = isSelected ? palette.focus : picture.critical[node] ? palette.ink : look.kind === "failed" || look.kind === "running" ? palette.states[look.kind] : palette.lineStrong;
  pen.stroke();
  drawGlyph(pen, look.kind, box.x + 10, box.y + (look.size ? 7 : 11), 14, palette);
  pen.textBaseline = "middle";
  pen.font = `530 12.5px ${palette.sans}`;
  const size = look.size ? `×${grouped(look.size)}` : "";
  const sizeWidth = size ? pen.measureText(size).width + 6 : 0;
  const middle = box.y + (look.size ? 14.5 : HIGH / 2 + 0.5);
  pen.fillStyle = palette.ink;
  pen.fillText(fitted(pen, plain(look.name), WIDE - 42 - sizeWidth), box.x + 31, middle);
  if (size) {
    pen.fillStyle = palette.dim;
    pen.fillText(size, box.x + WIDE - 10 - pen.measureText(size).width, middle);
    drawShares(pen, palette, look, box);
  }
  drawStub(pen, palette, picture.hiddenUp[node] ?? 0, box, true);
  drawStub(pen, palette, picture.hiddenDown[node] ?? 0, box, false);
}

/** The states of instances as a bar at the foot of the node. */
function drawShares(pen: CanvasRenderingContext2D, palette: Palette, look: GraphNodeLook, box: Box): void {
  const [left, width] = [box.x + 10, WIDE - 20];
  let x = left;
  for (const [kind, number] of look.counts) {
    const part = Math.max(3, (number / Math.max(1, look.size)) * width);
    pen.fillStyle = palette.states[kind];
    pen.fillRect(x, box.y + HIGH - 10, Math.min(part, left + width - x), 4);
    x += part + 1;
  }
}

/** `… 412`: neighbours that are not shown. */
function drawStub(pen: CanvasRenderingContext2D, palette: Palette, number: number, box: Box, isUp: boolean): void {
  if (number === 0) return;
  const text = `… ${number > 9999 ? "9999+" : number}`;
  pen.font = `11px ${palette.sans}`;
  const width = Math.max(STUB - 8, pen.measureText(text).width + 10);
  const x = isUp ? box.x - width - 8 : box.x + WIDE + 8;
  pen.strokeStyle = palette.lineStrong;
  pen.lineWidth = 1;
  pen.setLineDash([3, 2]);
  pen.beginPath();
  pen.moveTo(isUp ? box.x - 8 : box.x + WIDE, box.y + HIGH / 2);
  pen.lineTo(isUp ? box.x : box.x + WIDE + 8, box.y + HIGH / 2);
  pen.stroke();
  pen.setLineDash([]);
  pen.beginPath();
  pen.roundRect(x, box.y + HIGH / 2 - 9, width, 18, 9);
  pen.fillStyle = palette.tint;
  pen.fill();
  pen.fillStyle = palette.dim;
  pen.fillText(text, x + (width - pen.measureText(text).width) / 2, box.y + HIGH / 2 + 0.5);
}

export interface MapPicture {
  layout: Layout;
  kinds: readonly StateKind[];
  isShown: (node: number) => boolean;
}

/** The whole graph, small. What is in the picture beside it is strong, everything else pale. */
export function drawMap(pen: CanvasRenderingContext2D, { width, height, palette }: Drawing, map: MapPicture, selected: number): void {
  const { layout } = map;
  const point = mapPoint(layout, width, height);
  const size = Math.max(1.5, Math.min(5, (width / Math.max(1, layout.layers)) * 0.7, (height / (layout.rows + 1)) * 0.7));
  const draw = (node: number, extra: number): void => {
    const { x, y } = point(node);
    pen.fillStyle = palette.states[map.kinds[node] ?? "pending"];
    pen.fillRect(x - (size + extra) / 2, y - (size + extra) / 2, size + extra, size + extra);
  };
  for (let node = 0; node < map.kinds.length; node += 1) {
    pen.globalAlpha = map.isShown(node) ? 1 : 0.28;
    draw(node, 0);
  }
  pen.globalAlpha = 1;
  for (let node = 0; node < map.kinds.length; node += 1) if (map.kinds[node] === "failed") draw(node, 2);
  if (selected < 0) return;
  const { x, y } = point(selected);
  pen.strokeStyle = palette.ink;
  pen.lineWidth = 1.5;
  pen.strokeRect(x - 5, y - 5, 10, 10);
}

/** The node of the map that is nearest to a point. */
export function nearestOnMap(layout: Layout, width: number, height: number, x: number, y: number): number {
  const point = mapPoint(layout, width, height);
  let [best, distance] = [-1, Infinity];
  for (let node = 0; node < layout.layer.length; node += 1) {
    const at = point(node);
    const found = (at.x - x) ** 2 + (at.y - y) ** 2;
    if (found < distance) [best, distance] = [node, found];
  }
  return best;
}

function mapPoint(layout: Layout, width: number, height: number): (node: number) => { x: number; y: number } {
  const space = 8;
  return (node) => ({
    x: space + ((layout.layer[node] ?? 0) / Math.max(1, layout.layers - 1)) * (width - 2 * space),
    y: space + ((layout.row[node] ?? 0) / Math.max(1, layout.rows)) * (height - 2 * space),
  });
}
