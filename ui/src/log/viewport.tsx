/** A list of any length in a box that scrolls. Rows may be of any height: only those that are seen are laid out. */

import type { JSX, Ref } from "preact";
import { useEffect, useImperativeHandle, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Anchor, moved, placesAround, type Range, shareOf, spaceOf } from "./layout.ts";

export interface ViewportHandle {
  /** Shows a row in the upper part of the box. */
  toPlace(place: number): void;
  toEnd(): void;
  focus(): void;
}

interface ViewportProps {
  count: number;
  label: string;
  /** The least height of a row, in pixels. */
  rowHeight: number;
  row: (place: number) => JSX.Element;
  /** Rows that are shown as one: the row of the first of them. */
  fold: (place: number) => Range | undefined;
  /** Stays at the end when rows are added. */
  sticks: boolean;
  /** The last row is in sight, or not any more, after the user has scrolled. */
  onEnd: (isAtEnd: boolean) => void;
  /** Changes when rows changed. */
  version: unknown;
  wraps: boolean;
  handle: Ref<ViewportHandle>;
}

export function Viewport({ count, label, rowHeight, row, fold, sticks, onEnd, version, wraps, handle }: ViewportProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const sheet = useRef<HTMLDivElement>(null);
  const [height, setHeight] = useState(0);
  const [anchor, setAnchor] = useState<Anchor>({ place: 0, y: 0 });
  const [estimate, setEstimate] = useState(rowHeight);
  const space = spaceOf(count, estimate, height);
  /** The first row that is seen, and the scroll position that belongs to it. */
  const seen = useRef<{ top: Anchor; scroll: number; reach: number; isAtEnd: boolean }>({ top: anchor, scroll: 0, reach: -1, isAtEnd: false });
  const isOwn = useRef(false);
  const wasMoved = useRef(false);

  const show = (next: Anchor): void => {
    isOwn.current = true;
    setAnchor(next);
  };
  const move = (pixels: number): void => {
    wasMoved.current = true;
    show(moved(seen.current.top, pixels));
  };
  useImperativeHandle(handle, () => ({
    toPlace: (place) => show({ place, y: (box.current?.clientHeight ?? 0) / 3 }),
    toEnd: () => show({ place: count, y: box.current?.clientHeight ?? 0 }),
    focus: () => box.current?.focus({ preventScroll: true }),
  }));

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setHeight(element.clientHeight));
    observer.observe(element);
    setHeight(element.clientHeight);
    return () => observer.disconnect();
  }, []);
  useEffect(() => { if (sticks) show({ place: count, y: height }); }, [sticks, count, height]);
  useEffect(() => setEstimate(rowHeight), [wraps, rowHeight]);
  useEffect(() => {
    const element = box.current;
    // A scaled box would jump over rows.
    if (!element || !space.isScaled) return undefined;
    const onWheel = (event: WheelEvent): void => {
      if (event.ctrlKey || event.deltaY === 0) return;
      event.preventDefault();
      if (event.deltaX) element.scrollLeft += event.deltaX;
      move(event.deltaY * (event.deltaMode === 1 ? rowHeight : event.deltaMode === 2 ? height : 1));
    };
    element.addEventListener("wheel", onWheel, { passive: false });
    return () => element.removeEventListener("wheel", onWheel);
  }, [space.isScaled, height]);

  const onScroll = (): void => {
    const element = box.current;
    if (!element || Math.abs(element.scrollTop - seen.current.scroll) < 1.5) return;
    seen.current.scroll = element.scrollTop;
    wasMoved.current = true;
    isOwn.current = false;
    const share = space.reach === 0 ? 0 : Math.min(1, element.scrollTop / space.reach);
    setAnchor({ place: share * count, y: share * height });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target !== event.currentTarget) return;
    const moves: Record<string, number> = { ArrowDown: rowHeight, ArrowUp: -rowHeight, PageDown: height - 2 * rowHeight, PageUp: 2 * rowHeight - height, " ": height - 2 * rowHeight };
    if (event.key in moves) move(moves[event.key] ?? 0);
    else if (event.key === "Home") { wasMoved.current = true; show({ place: 0, y: 0 }); }
    else if (event.key === "End") { wasMoved.current = true; show({ place: count, y: height }); }
    else return;
    event.preventDefault();
  };

  const places = height === 0 ? [] : placesAround(anchor, count, height, rowHeight, fold);
  useLayoutEffect(() => {
    const [element, rows] = [box.current, sheet.current];
    if (!element || !rows || places.length === 0) return;
    const lines = [...rows.children] as HTMLElement[];
    const at = Math.max(0, lines.findIndex((each) => Number(each.dataset["place"]) + 1 > Math.min(anchor.place, count - 1) || each === lines.at(-1)));
    const line = lines[at] as HTMLElement;
    const part = Math.min(1, Math.max(0, anchor.place - Number(line.dataset["place"])));
    let top = anchor.y - line.offsetTop - part * line.offsetHeight;
    const isLastThere = places.at(-1) === lastPlace(count, fold);
    if (isLastThere) top = Math.max(top, height - rows.offsetHeight);
    if (places[0] === 0) top = Math.min(top, 0);
    if (isLastThere && rows.offsetHeight <= height) top = 0;
    rows.style.transform = `translateY(${top}px)`;
    const first = lines.find((each) => each.offsetTop + each.offsetHeight + top > 0) ?? line;
    const isAtEnd = isLastThere && rows.offsetHeight + top <= height + 2;
    const shown = { place: Number(first.dataset["place"]), y: first.offsetTop + top };
    if (isOwn.current || seen.current.reach !== space.reach) element.scrollTop = isAtEnd ? space.reach : shareOf(shown, first.offsetHeight, count, height / estimate) * space.reach;
    seen.current = { top: shown, scroll: element.scrollTop, reach: space.reach, isAtEnd };
    isOwn.current = false;
    if (wasMoved.current) onEnd(isAtEnd);
    wasMoved.current = false;
    const mean = rows.offsetHeight / lines.length;
    if (wraps && Math.abs(mean - estimate) > estimate / 4) setEstimate(Math.max(rowHeight, mean));
  }, [anchor, count, height, version, wraps, estimate]);

  return (
    <div class={`log-box${wraps ? " is-wrapped" : ""}`} ref={box} tabIndex={0} role="region" aria-label={label} onScroll={onScroll} onKeyDown={onKeyDown} style={{ "--log-row": `${rowHeight}px` }}>
      <div class="log-space" style={{ height: `${space.height}px` }}>
        <div class="log-window" style={{ height: `${height}px` }}>
          <div class="log-sheet" ref={sheet}>{places.map(row)}</div>
        </div>
      </div>
    </div>
  );
}

function lastPlace(count: number, fold: (place: number) => Range | undefined): number {
  return fold(count - 1)?.first ?? count - 1;
}
