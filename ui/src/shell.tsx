/** What stands around every page: navigation, header, dialogs, messages. */

import type { ComponentType, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { now } from "./clock.ts";
import { paletteActions } from "./commands.ts";
import { installation, isOneRun, isOutdated, isSignedOut, session, sessionProblem, signOut, source, startSession } from "./data/session.ts";
import { streamState } from "./data/stream.ts";
import { LOADERS, NAVIGATION, type NavigationEntry, type PageProps, ROUTES } from "./pages.ts";
import { Dialog, openDialog, showDialog } from "./parts/dialog.tsx";
import { Empty } from "./parts/empty.tsx";
import { Icon, Mark } from "./parts/icons.tsx";
import { Notices, notifyProblem } from "./parts/notice.tsx";
import { modKey } from "./parts/keys.tsx";
import { Page, Waiting } from "./parts/page.tsx";
import { ProblemView } from "./parts/problem.tsx";
import { asProblem, Problem } from "./data/problem.ts";
import { copy } from "./parts/command.tsx";
import { notify } from "./parts/notice.tsx";
import { currentPath, go, href, link, match } from "./router.ts";
import { activeShortcuts, type Shortcut, useShortcuts } from "./shortcuts.ts";
import { theme, toggleTheme } from "./theme.ts";
import { utc } from "./words.ts";

export function Shell(): JSX.Element {
  useShortcuts(SHORTCUTS);
  const user = session.value;
  if (user === undefined) {
    const problem = sessionProblem.value;
    return <main class="alone">{problem ? <ProblemView problem={problem} again={() => { sessionProblem.value = null; void startSession(); }} /> : <Waiting what="the server" />}</main>;
  }
  if (user === null) {
    return (
      <>
        <main class="alone"><Lazy page="sign-in" params={{}} /></main>
        <Notices />
      </>
    );
  }
  return (
    <div class="shell">
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>To the content</a>
      <Header />
      <Navigation />
      <main id="main" class="main" tabIndex={-1}>
        <Banners />
        <CurrentPage />
      </main>
      <Dialogs />
      <Notices />
    </div>
  );
}

function Header(): JSX.Element {
  const user = session.value;
  return (
    <header class="header">
      <a class="brand" href={href("")} aria-label="Ork, home"><Mark /><span>Ork</span></a>
      <button type="button" class="find" onClick={() => showDialog("find")}>
        <Icon name="search" /><span>Find</span><kbd>{modKey()} K</kbd>
      </button>
      <div class="header-end">
        <span class="installation" title="The installation">{installation.value}</span>
        <time class="clock number" title={utc(now.value)}>{utc(now.value).slice(11, 16)} UTC</time>
        {user && source.canAct && <details class="menu">
          <summary title="Who is signed in"><span class="avatar" aria-hidden="true">{user.name.slice(0, 1).toUpperCase()}</span><span class="user">{user.name} <span class="dim">({user.role})</span></span></summary>
          <div class="menu-body">
            <p><b>{user.name}</b>, role {user.role}<br /><span class="dim">{user.until && <>Signed in until {utc(user.until).slice(11, 16)} UTC · </>}Ork {user.version}</span></p>
            <button type="button" class="button" onClick={() => void signOut().catch((error: unknown) => notifyProblem(asProblem(error)))}><Icon name="out" />Sign out</button>
          </div>
        </details>}
        <button type="button" class="button plain" onClick={toggleTheme} title="Theme (d)" aria-label={theme.value === "dark" ? "Use the light theme" : "Use the dark theme"}><Icon name={theme.value === "dark" ? "sun" : "moon"} /></button>
        <button type="button" class="button plain wide-only" onClick={() => showDialog("keys")} title="Keyboard (?)" aria-label="Keyboard shortcuts"><Icon name="help" /></button>
      </div>
    </header>
  );
}

function Navigation(): JSX.Element {
  const [first = ""] = currentPath.value.split("/");
  return (
    <nav class="navigation" aria-label="Pages">
      {NAVIGATION.filter(isThere).map((entry) => (
        <a key={entry.to} href={href(entry.to)} aria-current={first === entry.to ? "page" : undefined} title={`${entry.label} (g ${entry.key})`}>
          <Icon name={entry.icon} />
          <span>{entry.label}</span>
          {entry.to === "system" && streamState.value === "lost" && <span class="dot is-bad" role="img" aria-label="The server does not answer" />}
        </a>
      ))}
    </nav>
  );
}

/** A snapshot has no tokens and no audit, and one of a single run has no other pages. */
function isThere(entry: NavigationEntry): boolean {
  return source.canAct || (isOneRun.value ? entry.to === "runs" : entry.to !== "access");
}

function Banners(): JSX.Element {
  return (
    <>
      {isOutdated.value && <div class="banner" role="status"><span>The server is newer than this page.</span><button type="button" class="button small" onClick={() => location.reload()}>Reload</button></div>}
      {source.asOf !== null && <div class="banner" role="status"><span>As of {utc(source.asOf)}, read only.</span></div>}
    </>
  );
}

function CurrentPage(): JSX.Element {
  const found = match(ROUTES, currentPath.value);
  if (!found) {
    return (
      <Page title="Not found">
        <Empty title="There is no page at this address"><a href={href("")}>Go to the home page</a></Empty>
      </Page>
    );
  }
  return <Lazy page={found.page} params={found.params} />;
}

const loaded = new Map<string, ComponentType<PageProps>>();

/** Begins to load the page of the address, while the server is asked who is signed in. */
export function loadFirstPage(): void {
  const found = match(ROUTES, currentPath.value);
  if (found) void LOADERS[found.page]?.().catch(() => undefined);
}

/** Loads a page's file once. Another page, or another thing on the same kind of page, starts anew. */
function Lazy({ page, params }: { page: string; params: PageProps["params"] }): JSX.Element {
  const [, update] = useState(0);
  const [problem, setProblem] = useState<Problem | null>(null);
  const Found = loaded.get(page);
  const load = (): void => {
    setProblem(null);
    LOADERS[page]?.().then(
      (module) => { loaded.set(page, module.default); update((number) => number + 1); },
      () => setProblem(new Problem("disconnected", "The page could not be loaded", "The server does not answer, or has been updated.", "Reload this page.")),
    );
  };
  useEffect(() => { if (!loaded.has(page)) load(); }, [page]);
  if (problem) return <ProblemView problem={problem} again={load} />;
  return Found ? <Found key={`${page} ${Object.values(params).join("/")}`} params={params} /> : <Waiting what="the page" />;
}

type DialogComponent = ComponentType<{ onClose: () => void }>;

const DIALOGS: Readonly<Record<string, () => Promise<{ default: DialogComponent }>>> = {
  find: () => import("./dialogs/palette.tsx"),
  keys: () => import("./dialogs/help.tsx"),
  run: () => import("./dialogs/run.tsx"),
  backfill: () => import("./dialogs/backfill.tsx"),
};

const loadedDialogs = new Map<string, DialogComponent>();

/** Dialogs of the shell. Pages show their own for other names. */
function Dialogs(): JSX.Element | null {
  const [, update] = useState(0);
  const name = openDialog() ?? "";
  const Found = loadedDialogs.get(name);
  useEffect(() => {
    if (Object.hasOwn(DIALOGS, name) && !loadedDialogs.has(name)) void DIALOGS[name]?.().then((module) => { loadedDialogs.set(name, module.default); update((number) => number + 1); }, () => notify("bad", "The dialog could not be loaded.", "Reload this page."));
  }, [name]);
  // Signing in again stands before a dialog that is open: what was typed there stays.
  return (
    <>
      {Found && <Found onClose={() => showDialog(null)} />}
      {isSignedOut.value && <Dialog title="Signed out" onClose={() => undefined} bare><Lazy page="sign-in" params={{}} /></Dialog>}
    </>
  );
}

const SHORTCUTS: readonly Shortcut[] = [
  { keys: "mod+k", does: "Find", group: "Everywhere", always: true, run: () => showDialog("find") },
  { keys: "?", does: "This list", group: "Everywhere", run: () => showDialog("keys") },
  { keys: "/", does: "Filter", group: "Everywhere", run: () => document.querySelector<HTMLInputElement>("[data-filter]")?.focus() },
  { keys: "d", does: "Light or dark theme", group: "Everywhere", run: toggleTheme },
  { keys: "y", does: "Copy the link to this page", group: "Everywhere", run: () => void copy(link()).then((isDone) => isDone && notify("good", "The link is copied.")) },
  { keys: "c", does: "Copy the command of this page", group: "Everywhere", run: copyCommand },
  ...NAVIGATION.map((entry): Shortcut => ({ keys: `g ${entry.key}`, does: entry.label, group: "Go to", run: () => go(entry.to) })),
];

paletteActions.value = [
  { label: "Light or dark theme", words: "colour", keys: "d", run: toggleTheme },
  { label: "Keyboard shortcuts", words: "help keys", keys: "?", run: () => showDialog("keys") },
  { label: "Copy the link to this page", keys: "y", run: () => activeShortcuts().find((each) => each.keys === "y")?.run(new KeyboardEvent("keydown")) },
];

function copyCommand(): void {
  const text = document.querySelector(".page-foot .command code")?.textContent?.replace(/^\$ /, "");
  if (text) void copy(text).then((isDone) => isDone && notify("good", `Copied: ${text}`));
}
