/** A modal dialog. Dialogs have an address: `?dialog=run`. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import { currentQuery, setQuery } from "../router.ts";
import { Icon } from "./icons.tsx";

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
  footer?: ComponentChildren;
  /** Wider than usual. */
  wide?: boolean;
  /** Without a visible head, for the palette. */
  bare?: boolean;
}

export function Dialog({ title, onClose, children, footer, wide = false, bare = false }: DialogProps): JSX.Element {
  const ref = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = ref.current;
    dialog?.showModal();
    first(dialog)?.focus();
    return () => dialog?.close();
  }, []);
  return (
    <dialog
      ref={ref}
      class={`dialog${wide ? " is-wide" : ""}${bare ? " is-bare" : ""}`}
      aria-labelledby={heading}
      onCancel={(event) => { event.preventDefault(); onClose(); }}
      onClick={(event) => { if (event.target === ref.current) onClose(); }}
    >
      <header class={bare ? "only-read" : "dialog-head"}>
        <h2 id={heading}>{title}</h2>
        {!bare && <button type="button" class="button plain" aria-label="Close" onClick={onClose}><Icon name="close" /></button>}
      </header>
      <div class="dialog-body">{children}</div>
      {footer && <footer class="dialog-foot">{footer}</footer>}
    </dialog>
  );
}

/** What the keyboard begins with: the first field, or the button that does it. A question about a loss begins where the browser begins: at Close. */
function first(dialog: HTMLDialogElement | null): HTMLElement | null | undefined {
  return dialog?.querySelector<HTMLElement>(".dialog-body :is(input:not([type=checkbox]), select, textarea)") ?? dialog?.querySelector<HTMLElement>(".dialog-foot .primary");
}

/** The dialog that the address names, or null. */
export function openDialog(): string | null {
  return currentQuery.value.get("dialog");
}

export function showDialog(name: string | null): void {
  setQuery({ dialog: name }, { push: name !== null });
}
