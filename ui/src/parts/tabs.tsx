/** Views of one page as links; which one is shown is in the address. */

import type { ComponentChildren, JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { changedQuery, currentPath, currentQuery, href } from "../router.ts";

export interface Tab {
  key: string;
  label: ComponentChildren;
}

/** The view that the address names, or the first. */
export function currentTab(tabs: readonly Tab[], param = "view"): string {
  const wanted = currentQuery.value.get(param);
  return tabs.some((tab) => tab.key === wanted) ? (wanted as string) : (tabs[0]?.key ?? "");
}

export function Tabs({ tabs, label, param = "view" }: { tabs: readonly Tab[]; label: string; param?: string }): JSX.Element {
  const now = currentTab(tabs, param);
  const ref = useRef<HTMLElement>(null);
  // On a phone the tabs scroll sideways: the current one is in view.
  useLayoutEffect(() => {
    const current = ref.current?.querySelector<HTMLElement>("[aria-current]");
    if (ref.current && current) ref.current.scrollLeft = current.offsetLeft + current.offsetWidth - ref.current.offsetLeft - ref.current.clientWidth;
  }, [now]);
  return (
    <nav class="tabs" aria-label={label} ref={ref}>
      {tabs.map((tab, place) => (
        <a key={tab.key} href={href(`${currentPath.value}${changedQuery(currentQuery.value, { [param]: place === 0 ? null : tab.key })}`)} aria-current={tab.key === now ? "page" : undefined}>
          {tab.label}
        </a>
      ))}
    </nav>
  );
}
