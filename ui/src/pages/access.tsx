/** Who may, and who did? */

import type { JSX } from "preact";
import { session, may } from "../data/session.ts";
import { Problem } from "../data/problem.ts";
import { Audit } from "../parts/audit.tsx";
import { Page } from "../parts/page.tsx";
import { ProblemView } from "../parts/problem.tsx";
import { currentTab, type Tab, Tabs } from "../parts/tabs.tsx";
import { Tokens } from "../parts/tokens.tsx";

const TABS: readonly Tab[] = [{ key: "tokens", label: "Tokens" }, { key: "audit", label: "Audit" }];

export default function Access(): JSX.Element {
  const bar = <Tabs tabs={TABS} label="Access" />;
  if (!may("admin")) {
    const needs = new Problem("forbidden", "This page needs the role admin", `Tokens and the audit are for admins. The role ${session.value?.role ?? ""} does not include them.`);
    return <Page title="Access"><ProblemView problem={needs} /></Page>;
  }
  return currentTab(TABS) === "audit" ? <Audit bar={bar} /> : <Tokens bar={bar} />;
}
