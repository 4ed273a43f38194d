/** A canvas that follows its size and is drawn at most once a frame. */

import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { theme } from "../theme.ts";
import { type Palette, readPalette } from "./palette.ts";

export interface Drawing {
  width: number;
  height: number;
  palette: Palette;
}

type Draw = (pen: CanvasRenderingContext2D, drawing: Drawing) => void;

/** Draws after each rendering of the component and when the size changes; `redraw` draws without a rendering. */
export function useCanvas(draw: Draw): { canvas: RefObject<HTMLCanvasElement | null>; redraw: () => void } {
  const canvas = useRef<HTMLCanvasElement>(null);
  const latest = useRef(draw);
  latest.current = draw;
  const palette = useRef<Palette | null>(null);
  const shownTheme = theme.value;
  useMemo(() => { palette.current = null; }, [shownTheme]);
  const redraw = useMemo(() => {
    let frame = 0;
    const now = (): void => {
      frame = 0;
      const element = canvas.current;
      const pen = element?.getContext("2d");
      if (!element || !pen) return;
      const { clientWidth: width, clientHeight: height } = element;
      const ratio = devicePixelRatio || 1;
      const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
      if (element.width !== wide || element.height !== high) [element.width, element.height] = [wide, high];
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.clearRect(0, 0, width, height);
      palette.current ??= readPalette();
      if (width > 0 && height > 0) latest.current(pen, { width, height, palette: palette.current });
    };
    return () => { frame ||= requestAnimationFrame(now); };
  }, []);
  useLayoutEffect(redraw);
  useElement(canvas, (element) => {
    const observer = new ResizeObserver(redraw);
    observer.observe(element);
    return () => observer.disconnect();
  });
  return { canvas, redraw };
}

/** Runs a function for the element of a reference, also if it comes later or is replaced; what it returns is called at the end. */
export function useElement<E extends Element>(reference: RefObject<E | null>, start: (element: E) => () => void): void {
  const seen = useRef<{ element: E; end: () => void } | null>(null);
  useLayoutEffect(() => {
    const element = reference.current;
    if (seen.current?.element === element || (!seen.current && !element)) return;
    seen.current?.end();
    seen.current = element ? { element, end: start(element) } : null;
  });
  useEffect(() => () => seen.current?.end(), []);
}
