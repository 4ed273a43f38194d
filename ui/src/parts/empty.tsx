/** Nothing to show: what to do next, as a command to paste, or which filter to drop. */

import type { ComponentChildren, JSX } from "preact";
import { CommandLine } from "./command.tsx";
import { Icon, type IconName } from "./icons.tsx";

interface EmptyProps {
  title: string;
  icon?: IconName;
  command?: string;
  children?: ComponentChildren;
  /** Removes the filters of the page. */
  onClear?: () => void;
}

export function Empty({ title, icon = "search", command, children, onClear }: EmptyProps): JSX.Element {
  return (
    <section class="blank">
      <span class="blank-icon"><Icon name={icon} /></span>
      <h2>{title}</h2>
      {children && <p>{children}</p>}
      <div class="blank-actions">
        {command && <CommandLine command={command} />}
        {onClear && <button type="button" class="button" onClick={onClear}>Clear the filters</button>}
      </div>
    </section>
  );
}

/** `first 500 of 1,204`, with a button for more: never a silent cut. */
export function Partial({ shown, of, what, more }: { shown: number; of?: number | null; what: string; more?: () => void }): JSX.Element {
  return (
    <p class="partial">
      <span>The first {shown.toLocaleString("en-US")}{of != null ? ` of ${of.toLocaleString("en-US")}` : ""} {what}{of == null ? "; there are more" : ""}.</span>
      {more && <button type="button" class="button small" onClick={more}>Show more</button>}
    </p>
  );
}
