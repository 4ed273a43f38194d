/** Where in a fan-out are the failures, the slow ones, the ones that still run? One cell for each instance. */

import type { JSX } from "preact";
import { useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { now } from "../clock.ts";
import { NONE } from "../data/columns.ts";
import { useCanvas } from "../draw/canvas.ts";
import { countsOf } from "../draw/groups.ts";
import { type CellImage, drawMosaic } from "../draw/mosaic-canvas.ts";
import { cellsFor, type MosaicOrder, ordered } from "../draw/mosaic.ts";
import { Select } from "../parts/form.tsx";
import { announce } from "../parts/notice.tsx";
import { Counts } from "../parts/state.tsx";
import { currentQuery, setQuery } from "../router.ts";
import { count, grouped, isFinal } from "../words.ts";
import { filter, placeOfSelection, type RunTasks, select, selection, selectionAt } from "./model.ts";
import { describe } from "./timeline.tsx";

const ORDERS = [["index", "by index"], ["duration", "by duration"], ["start", "by start"]] as const;
const HIGH = 220;

/** The fan-out of the selected task, the one that the address names, the first with a failure, or the first. */
export function Mosaic({ tasks }: { tasks: RunTasks }): JSX.Element | null {
  const fans = tasks.groups.filter((group) => group.instances.length > 0);
  const selected = selection();
  const isFailed = (place: number): boolean => place !== NONE && tasks.tasks.statuses[tasks.tasks.status[place] ?? 0] === "failed";
  const group = fans.find((each) => each.name === selected?.task) ?? fans.find((each) => each.name === currentQuery.value.get("fan")) ?? fans.find((each) => isFailed(each.own)) ?? fans[0];
  const given = currentQuery.value.get("by");
  const by: MosaicOrder = given === "duration" || given === "start" ? given : "index";
  const places = useMemo(() => (group ? ordered(tasks.tasks, group.instances, by) : new Uint32Array()), [tasks, group?.name, by]);
  const filterKey = `${currentQuery.value.get("find") ?? ""}\n${currentQuery.value.get("state") ?? ""}`;
  const keep = useMemo(() => filter(tasks), [tasks, filterKey]);
  const [width, setWidth] = useState(0);
  const [cursor, setCursor] = useState(NONE);
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setWidth(element.clientWidth));
    observer.observe(element);
    setWidth(element.clientWidth);
    return () => observer.disconnect();
  }, [group === undefined]);
  const cells = cellsFor(places.length, Math.max(1, width), HIGH);
  const chosen = places.indexOf(placeOfSelection(tasks, selected));
  const counts = useMemo(() => Object.fromEntries(countsOf(tasks.tasks, group?.instances ?? new Uint32Array())), [tasks, group?.name]);
  const cache = useRef<CellImage | null>(null);
  const { canvas } = useCanvas((pen, drawing) => { cache.current = drawMosaic(pen, drawing, { tasks: tasks.tasks, places, cells, keep, chosen, cursor }, cache.current); });
  if (!group) return null;
  const elapsed = isFinal(tasks.status) ? null : now.value - tasks.start;
  const cellAt = (event: MouseEvent): number => {
    const [column, row] = [Math.floor(event.offsetX / cells.step), Math.floor(event.offsetY / cells.step)];
    const at = row * cells.perRow + column;
    return column < cells.perRow && at < places.length ? at : NONE;
  };
  const open = (at: number): void => { if (at !== NONE) select(selectionAt(tasks, places[at] ?? 0)); };
  const onKeyDown = (event: KeyboardEvent): void => {
    const moves: Record<string, number> = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: cells.perRow, ArrowUp: -cells.perRow };
    if (event.key in moves) {
      const next = Math.max(0, Math.min(places.length - 1, (cursor === NONE ? 0 : cursor) + (moves[event.key] ?? 0)));
      setCursor(next);
      announce(describe(tasks, places[next] ?? NONE, elapsed));
    } else if (event.key === "Enter") open(cursor);
    else return;
    event.preventDefault();
  };
  return (
    <section class="section mosaic">
      <header class="section-head">
        <h2>{fans.length > 1
          ? <Select label="Fan-out" hideLabel value={group.name} options={fans.map((each) => [each.name, `${each.name} ×${grouped(each.instances.length)}`] as const)} onChange={(fan) => setQuery({ fan, ...(selected ? { task: fan, index: null } : {}) })} />
          : group.name}</h2>
        <span class="dim">{count(group.instances.length, "instance")}</span>
        <Counts of={counts} />
        <span class="section-aside"><Select label="Order of the cells" hideLabel value={by} options={ORDERS} onChange={(value) => setQuery({ by: value === "index" ? null : value })} /></span>
      </header>
      <div ref={box}>
        <canvas
          class="mosaic-canvas"
          ref={canvas}
          style={{ height: `${cells.rows * cells.step}px` }}
          tabIndex={0}
          role="application"
          aria-label={`${count(places.length, "instance")} of ${group.name}, ${ORDERS.find(([key]) => key === by)?.[1]}. Arrow keys move, Enter opens. The table has the same instances.`}
          onKeyDown={onKeyDown}
          onPointerMove={(event) => setCursor(cellAt(event))}
          onPointerLeave={() => setCursor(NONE)}
          onClick={(event) => open(cellAt(event))}
        />
      </div>
      <p class="readout">{cursor === NONE ? <span class="dim">Each cell is an instance</span> : describe(tasks, places[cursor] ?? NONE, elapsed)}</p>
    </section>
  );
}
