/** The frame of a page: title, actions, data with all their states, and the command that shows the same. */

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { now, serverNow } from "../clock.ts";
import type { Problem } from "../data/problem.ts";
import type { Read } from "../data/read.ts";
import { source } from "../data/session.ts";
import { lastHeard, streamState } from "../data/stream.ts";
import { href } from "../router.ts";
import { utcClock } from "../words.ts";
import { CommandLine } from "./command.tsx";
import { ProblemView } from "./problem.tsx";

interface PageProps<T> {
  /** The heading and the title of the tab. */
  title: string;
  /** In place of the title's text, for example with a state before it. */
  heading?: ComponentChildren;
  /** Pages above this one: `[["runs", "Runs"]]`. */
  crumbs?: readonly (readonly [to: string, label: string])[];
  /** Buttons at the right of the title. */
  actions?: ComponentChildren;
  /** Between title and content: filters, tabs. Shown also while data are read. */
  bar?: ComponentChildren;
  read?: Read<T>;
  /** What is awaited, in words: "runs". */
  what?: string;
  /** For a thing that is not there (any more): "Run 7f3k does not exist, or retention has removed it." */
  gone?: string;
  /** The command that shows the same. */
  command?: string;
  /** Whether changes show by themselves; says so at the foot. */
  live?: boolean;
  /** Uses the whole height: the content scrolls by itself. */
  fill?: boolean;
  children: ((data: T) => ComponentChildren) | ComponentChildren;
}

export function Page<T>(props: PageProps<T>): JSX.Element {
  useEffect(() => {
    document.title = props.title ? `${props.title} · Ork` : "Ork";
  }, [props.title]);
  return (
    <div class={`page${props.fill ? " is-filled" : ""}`}>
      <header class="page-head">
        <div class="page-title">
          {props.crumbs && (
            <nav class="crumbs" aria-label="Path">
              {props.crumbs.map(([to, label]) => <span key={to}><a href={href(to)}>{label}</a><span aria-hidden="true"> › </span></span>)}
            </nav>
          )}
          <h1>{props.heading ?? props.title}</h1>
        </div>
        {props.actions && <div class="page-actions">{props.actions}</div>}
      </header>
      {props.bar && <div class="page-bar">{props.bar}</div>}
      <div class="page-body">
        {props.read ? <Loaded read={props.read} what={props.what ?? props.title.toLowerCase()} gone={props.gone}>{props.children as (data: T) => ComponentChildren}</Loaded> : (props.children as ComponentChildren)}
      </div>
      {(props.command || props.live) && (
        <footer class="page-foot">
          {props.command && <CommandLine command={props.command} />}
          <span class="push" />
          {props.live && <Liveness />}
        </footer>
      )}
    </div>
  );
}

interface LoadedProps<T> {
  read: Read<T>;
  what: string;
  gone?: string | undefined;
  /** While nothing is there yet; default: grey lines. */
  shape?: ComponentChildren;
  children: (data: T) => ComponentChildren;
}

/** Data with their states, inside a page that reads several things. */
export function Loaded<T>({ read, what, gone, shape, children }: LoadedProps<T>): JSX.Element {
  const data = read.data.value;
  const problem = read.problem.value;
  if (data === undefined) {
    return problem && problem.kind !== "signed out" ? <ProblemView problem={problem} again={read.reload} gone={gone} /> : <Waiting what={what} shape={shape} />;
  }
  return (
    <>
      {problem && problem.kind !== "signed out" && <Outdated read={read} problem={problem} />}
      <div class={problem ? "is-old" : "is-fresh"}>{children(data)}</div>
    </>
  );
}

/** Says that a further source of a page could not be read: what is missing must not look as if it were not there. */
export function Missing<T>({ read, what }: { read: Read<T>; what: string }): JSX.Element | null {
  const problem = read.problem.value;
  if (!problem || problem.kind === "signed out") return null;
  if (read.data.value !== undefined) return <Outdated read={read} problem={problem} what={what} />;
  return (
    <div class="banner is-warning" role="status">
      <span>Without {what}: {problem.detail || problem.title}</span>
      {problem.kind !== "forbidden" && <button type="button" class="button small" onClick={read.reload}>Try again</button>}
    </div>
  );
}

/** Nothing for 150 ms, then the page's shape, then what is awaited. */
export function Waiting({ what, shape }: { what: string; shape?: ComponentChildren }): JSX.Element | null {
  const [stage, setStage] = useState<"none" | "shape" | "awaited">("none");
  useEffect(() => {
    const first = setTimeout(() => setStage("shape"), 150);
    const second = setTimeout(() => setStage("awaited"), 2000);
    return () => { clearTimeout(first); clearTimeout(second); };
  }, []);
  if (stage === "none") return null;
  return (
    <div class="waiting" aria-busy="true">
      {stage === "awaited" && <p class="waiting-text" role="status">Waiting for {what} …</p>}
      {shape ?? <div class="shape" aria-hidden="true">{[70, 92, 84, 60, 88, 76].map((width) => <span key={width} style={{ width: `${width}%` }} />)}</div>}
    </div>
  );
}

function Outdated<T>({ read, problem, what }: { read: Read<T>; problem: Problem; what?: string }): JSX.Element {
  const difference = serverNow() - Date.now();
  const asOf = read.asOf.value;
  const next = read.nextTry.value;
  const left = next === null ? null : Math.max(0, Math.ceil((next + difference - now.value) / 1000));
  return (
    <div class="banner is-warning" role="status">
      <span>
        {what && `Old ${what}: `}{problem.title}. As of {asOf === null ? "–" : utcClock(asOf + difference, now.value)} UTC
        {left === null ? "." : left === 0 ? ", trying again …" : `, trying again in ${left} s.`}
      </span>
      <button type="button" class="button small" onClick={read.reload}>Try now</button>
    </div>
  );
}

const LIVE_WORDS = {
  off: "not live",
  opening: "connecting",
  live: "live",
  quiet: "quiet: nothing runs",
  lost: "disconnected",
  polling: "asks every 15 s",
} as const;

/** `● live · 14:02:07`. */
export function Liveness(): JSX.Element {
  if (source.asOf !== null) return <span class="liveness">as of {utcClock(source.asOf, now.value)} UTC, read only</span>;
  const state = streamState.value;
  const heard = lastHeard.value;
  return (
    <span class={`liveness is-${state}`} title="Changes show by themselves. One tab of this browser listens for all of them.">
      <span class="dot" aria-hidden="true" />
      {LIVE_WORDS[state]}
      {heard !== null && state === "live" && <span class="number">· {utcClock(heard + serverNow() - Date.now(), now.value)}</span>}
    </span>
  );
}

/** A titled part of a page. */
export function Section({ title, aside, children }: { title: string; aside?: ComponentChildren; children: ComponentChildren }): JSX.Element {
  return (
    <section class="section">
      <header class="section-head">
        <h2>{title}</h2>
        {aside && <span class="section-aside">{aside}</span>}
      </header>
      {children}
    </section>
  );
}

/** Names and values: `<Facts of={[["Version", "d21f"]]} />`. */
export function Facts({ of }: { of: readonly (readonly [name: string, value: ComponentChildren])[] }): JSX.Element {
  return (
    <dl class="facts">
      {of.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
    </dl>
  );
}
