/** A table of any length: only the rows that are seen are in the page. `j` and `k` move, Enter opens, a click too. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { currentQuery, setQuery } from "../router.ts";
import { useShortcuts } from "../shortcuts.ts";
import { Icon } from "./icons.tsx";
import { Picked, type Rows, scrollTo, visibleRows } from "./rows.ts";

export interface Column<T> {
  /** The name in the address when sorted by it. */
  key: string;
  head: string;
  cell: (row: T, place: number) => ComponentChildren;
  /** A track of a CSS grid: `8rem`, `minmax(10rem, 2fr)`. Default `1fr`. */
  width?: string;
  /** The track on a phone. `glyph` shows the glyph of a state without its word, which is still read aloud. */
  phone?: string;
  align?: "right";
  /** Not shown on a phone. */
  wide?: boolean;
  /** Sorts rows in the page; the head becomes a button. Only where all rows are there. */
  sort?: (a: T, b: T) => number;
}

interface TableProps<T> {
  /** What the rows are, for screen readers. */
  label: string;
  rows: Rows<T>;
  columns: readonly Column<T>[];
  rowKey: (row: T) => string;
  /** Where a row leads: its first cell is a link, and Enter follows it. */
  href?: (row: T) => string;
  /** In place of a link: opens a drawer, for example. */
  onOpen?: (row: T) => void;
  /** The key of the row that is open. */
  selected?: string | null;
  /** The number of all rows, if more exist than are here. */
  total?: number;
  rowHeight?: number;
  /** The key of the query that holds the sorting; default `sort`. */
  sortParam?: string;
}

const ALL_SHOWN = 120;

export function Table<T>(props: TableProps<T>): JSX.Element {
  const { label, columns, rowKey, rowHeight = 34, total, sortParam = "sort" } = props;
  const { rows, sorting, toggle } = useSorting(props.rows, columns, sortParam);
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const [cursor, setCursor] = useState(-1);
  const isVirtual = rows.length > ALL_SHOWN;
  const shown = isVirtual ? visibleRows(rows.length, rowHeight, view.top, view.height) : { first: 0, last: rows.length, offset: 0, height: rows.length * rowHeight };

  useLayoutEffect(() => {
    const element = scroller.current;
    if (!element || !isVirtual) return undefined;
    const measure = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    element.addEventListener("scroll", measure, { passive: true });
    return () => { observer.disconnect(); element.removeEventListener("scroll", measure); };
  }, [isVirtual]);

  const focusRow = (place: number): void => {
    const next = Math.max(0, Math.min(rows.length - 1, place));
    if (rows.length === 0) return;
    const element = scroller.current;
    const to = element && isVirtual ? scrollTo(next, rows.length, rowHeight, element.scrollTop, element.clientHeight - rowHeight) : null;
    if (element && to !== null) element.scrollTop = to;
    setCursor(next);
  };
  useEffect(() => {
    if (cursor < 0) return;
    scroller.current?.querySelector<HTMLElement>(`[data-place="${cursor}"]`)?.focus({ preventScroll: isVirtual });
  }, [cursor, shown.first]);
  useShortcuts([
    { keys: "j", does: "Next row", group: "Lists", run: () => focusRow(cursor + 1) },
    { keys: "k", does: "Previous row", group: "Lists", run: () => focusRow(cursor - 1) },
  ]);

  const open = (row: T, event?: MouseEvent | KeyboardEvent): void => {
    if (props.onOpen) props.onOpen(row);
    else (event?.currentTarget as HTMLElement | null)?.querySelector<HTMLAnchorElement>("a.row-link")?.click();
  };
  const onKeyDown = (event: KeyboardEvent, row: T, place: number): void => {
    const moves: Record<string, number> = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: rows.length - 1, PageDown: place + 15, PageUp: place - 15 };
    if (event.key === "Enter" && event.target === event.currentTarget) open(row, event);
    else if (event.key in moves) focusRow(moves[event.key] ?? 0);
    else return;
    event.preventDefault();
  };

  const tracks = { "--tracks": tracksOf(columns), "--tracks-phone": phoneTracks(columns), "--row": `${rowHeight}px` };
  const places = Array.from({ length: shown.last - shown.first }, (_, step) => shown.first + step);
  const canOpen = props.href !== undefined || props.onOpen !== undefined;
  return (
    <div class={`table${isVirtual ? " is-virtual" : ""}`} role="grid" aria-label={label} aria-rowcount={(total ?? rows.length) + 1} aria-colcount={columns.length} style={tracks} ref={scroller}>
      <div class="table-head" role="row" aria-rowindex={1}>
        {columns.map((column) => (
          <span role="columnheader" key={column.key} class={cellClass(column)} aria-sort={column.sort ? (sorting.key === column.key ? (sorting.isDown ? "descending" : "ascending") : "none") : undefined}>
            {column.sort ? (
              <button type="button" onClick={() => toggle(column.key)}>
                {column.head}
                {sorting.key === column.key && <Icon name={sorting.isDown ? "down" : "up"} />}
              </button>
            ) : column.head}
          </span>
        ))}
      </div>
      <div class="table-space" role="rowgroup" style={isVirtual ? { height: `${shown.height}px` } : undefined}>
        <div class="table-rows" role="presentation" style={isVirtual ? { transform: `translateY(${shown.offset}px)` } : undefined}>
          {places.map((place) => {
            const row = rows.at(place);
            if (row === undefined) return null;
            const key = rowKey(row);
            return (
              <div
                class={`table-row${canOpen ? " can-open" : ""}`}
                role="row"
                key={key}
                aria-rowindex={place + 2}
                aria-selected={props.selected === undefined ? undefined : props.selected === key}
                data-place={place}
                tabIndex={place === Math.max(cursor, shown.first) || (cursor < 0 && place === 0) ? 0 : -1}
                onFocus={(event) => { if (event.target === event.currentTarget && place !== cursor) setCursor(place); }}
                onKeyDown={(event) => onKeyDown(event, row, place)}
                onClick={(event) => { if (canOpen && !isControl(event)) open(row, event); }}
              >
                {columns.map((column, number) => (
                  <span role="gridcell" key={column.key} class={cellClass(column)}>
                    {number === 0 && props.href ? <a class="row-link" href={props.href(row)} tabIndex={-1}>{column.cell(row, place)}</a> : column.cell(row, place)}
                  </span>
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

interface Sorting {
  key: string | null;
  isDown: boolean;
}

/** Sorting is in the address: `sort=name`, or `sort=-name` downwards. */
function useSorting<T>(given: Rows<T>, columns: readonly Column<T>[], param: string): { rows: Rows<T>; sorting: Sorting; toggle: (key: string) => void } {
  const text = currentQuery.value.get(param) ?? "";
  const key = text.replace(/^-/, "");
  const isDown = text.startsWith("-");
  const sort = columns.find((column) => column.key === key)?.sort;
  const rows = useMemo(() => (sort ? sorted(given, sort, isDown) : given), [given, key, isDown]);
  const toggle = (next: string): void => setQuery({ [param]: key !== next ? next : isDown ? null : `-${next}` });
  return { rows, sorting: { key: sort ? key : null, isDown }, toggle };
}

function sorted<T>(rows: Rows<T>, sort: (a: T, b: T) => number, isDown: boolean): Rows<T> {
  const values = Array.from({ length: rows.length }, (_, place) => rows.at(place) as T);
  const places = Uint32Array.from(values.keys());
  const sign = isDown ? -1 : 1;
  places.sort((a, b) => sign * sort(values[a] as T, values[b] as T) || a - b);
  return new Picked(rows, places);
}

function tracksOf<T>(columns: readonly Column<T>[]): string {
  return columns.map((column) => column.width ?? "minmax(0, 1fr)").join(" ");
}

/** On a phone, columns that can shrink have no least width: nothing is cut off at the right. */
function phoneTracks<T>(columns: readonly Column<T>[]): string {
  const tracks = columns.filter((column) => !column.wide).map((column) => (column.phone === "glyph" ? "1.1rem" : (column.phone ?? column.width ?? "1fr")));
  return tracks.join(" ").replace(/minmax\([^,]*,/g, "minmax(0,");
}

function cellClass<T>(column: Column<T>): string | undefined {
  return [column.align === "right" ? "at-right" : "", column.wide ? "wide-only" : "", column.phone === "glyph" ? "phone-glyph" : ""].filter(Boolean).join(" ") || undefined;
}

/** A click on a button or link inside a row is not a click on the row. */
function isControl(event: MouseEvent): boolean {
  if (String(getSelection()) !== "") return true;
  return (event.target as Element).closest("a, button, input, select, label") !== null;
}
