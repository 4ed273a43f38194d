/** A panel beside the page's content; the whole screen on a phone. Esc closes it. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { useShortcuts } from "../shortcuts.ts";
import { Icon } from "./icons.tsx";

interface DrawerProps {
  title: ComponentChildren;
  onClose: () => void;
  children: ComponentChildren;
  actions?: ComponentChildren;
}

/** Put it beside the content: `<div class="beside"><div>…</div>{open && <Drawer …/>}</div>`. */
export function Drawer({ title, onClose, children, actions }: DrawerProps): JSX.Element {
  const heading = useId();
  const ref = useRef<HTMLElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    ref.current?.focus({ preventScroll: true });
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
  useShortcuts([{ keys: "Escape", does: "Close the panel", group: "This page", run: onClose }]);
  return (
    <aside class="drawer" aria-labelledby={heading} tabIndex={-1} ref={ref}>
      <header class="drawer-head">
        <h2 id={heading}>{title}</h2>
        {actions}
        <button type="button" class="button plain" aria-label="Close" onClick={onClose}><Icon name="close" /></button>
      </header>
      <div class="drawer-body">{children}</div>
    </aside>
  );
}
