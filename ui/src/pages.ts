/** The page map: addresses below `/ui/`, each page in a file of its own that is loaded when it is opened. */

import type { ComponentType } from "preact";
import type { Route } from "./router.ts";
import type { IconName } from "./parts/icons.tsx";

/** A page is the default export of `pages/<page>.tsx`; `params` are the named segments of its address. */
export interface PageProps {
  params: Readonly<Record<string, string>>;
}

export const ROUTES: readonly Route[] = [
  { pattern: "", page: "home" },
  { pattern: "runs", page: "runs" },
  { pattern: "runs/:id", page: "run" },
  { pattern: "runs/:a/compare/:b", page: "compare" },
  { pattern: "runs/:id/tasks/:name/:index/:attempt", page: "task" },
  { pattern: "runs/:id/tasks/:name/:index/:attempt/log", page: "log" },
  { pattern: "workflows", page: "workflows" },
  { pattern: "workflows/:name", page: "workflow" },
  { pattern: "schedules", page: "schedules" },
  { pattern: "system", page: "system" },
  { pattern: "access", page: "access" },
  { pattern: "approvals", page: "approvals" },
  { pattern: "sign-in", page: "sign-in" },
];

type Loader = () => Promise<{ default: ComponentType<PageProps> }>;

export const LOADERS: Readonly<Record<string, Loader>> = {
  home: () => import("./pages/home.tsx"),
  runs: () => import("./pages/runs.tsx"),
  run: () => import("./pages/run.tsx"),
  compare: () => import("./pages/compare.tsx"),
  task: () => import("./pages/task.tsx"),
  log: () => import("./pages/log.tsx"),
  workflows: () => import("./pages/workflows.tsx"),
  workflow: () => import("./pages/workflow.tsx"),
  schedules: () => import("./pages/schedules.tsx"),
  system: () => import("./pages/system.tsx"),
  access: () => import("./pages/access.tsx"),
  approvals: () => import("./pages/approvals.tsx"),
  "sign-in": () => import("./pages/sign-in.tsx"),
};

export interface NavigationEntry {
  to: string;
  label: string;
  icon: IconName;
  /** The second key after `g`. */
  key: string;
}

export const NAVIGATION: readonly NavigationEntry[] = [
  { to: "", label: "Home", icon: "home", key: "h" },
  { to: "runs", label: "Runs", icon: "runs", key: "r" },
  { to: "workflows", label: "Workflows", icon: "workflows", key: "w" },
  { to: "schedules", label: "Schedules", icon: "schedules", key: "s" },
  { to: "system", label: "System", icon: "system", key: "y" },
  { to: "access", label: "Access", icon: "access", key: "a" },
];
