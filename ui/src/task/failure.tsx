/** A failure: its message, the user's frames with the failing expression marked, and the inputs. */

import type { JSX } from "preact";
import type { Failure, FailureCause, FailureFrame } from "../api.d.ts";
import { inputsOf, framesIn } from "./model.ts";

export function FailureView({ failure, exitCode }: { failure: Failure; exitCode?: number | null }): JSX.Element {
  const frames = framesIn(failure.detail?.frames);
  const inputs = inputsOf(failure);
  const lines = lastLines(failure);
  return (
    <section class="failure" aria-label="Failure">
      <p class="failure-message">{failure.message}</p>
      {exitCode != null && failure.kind === "exit" && !/exit code|killed by/.test(failure.message) && <p class="dim">{exitWords(exitCode)}</p>}
      {frames.map((frame, place) => <FrameView key={place} frame={frame} />)}
      {causesOf(failure).map((cause, place) => (
        <div key={place}>
          <p>caused by <span class="failure-message">{cause.type}: {cause.message}</span></p>
          {framesIn(cause.frames).map((frame, number) => <FrameView key={number} frame={frame} />)}
        </div>
      ))}
      {inputs.length > 0 && (
        <dl class="pairs">
          {inputs.map(([name, value]) => <div key={name}><dt>{name}</dt><dd><code>{value}</code></dd></div>)}
        </dl>
      )}
      {lines.length > 0 && <pre class="failure-lines" tabIndex={0} aria-label="Last lines of the log">{lines.join("\n")}</pre>}
    </section>
  );
}

function FrameView({ frame }: { frame: FailureFrame }): JSX.Element {
  const { text, caret } = trimmed(frame);
  return (
    <figure class="frame">
      <figcaption><code>{frame.file}:{frame.line}</code> in <code>{frame.function}</code></figcaption>
      {text && (
        <pre tabIndex={0} aria-label={`Line ${frame.line}`}>
          <span class="frame-number" aria-hidden="true">{frame.line}</span>
          {caret ? <>{text.slice(0, caret[0])}<mark>{text.slice(caret[0], caret[1])}</mark>{text.slice(caret[1])}</> : text}
          {caret && <span aria-hidden="true">{"\n"}<span class="frame-number" /><span class="frame-caret">{" ".repeat(caret[0])}{"^".repeat(Math.max(1, caret[1] - caret[0]))}</span></span>}
        </pre>
      )}
    </figure>
  );
}

/** The source without its indentation, and the caret moved with it. */
function trimmed({ source, caret }: FailureFrame): { text: string; caret: [number, number] | null } {
  const whole = (source ?? "").trimEnd();
  const text = whole.trimStart();
  const cut = whole.length - text.length;
  if (!caret || caret.length !== 2) return { text, caret: null };
  const [first, last] = [Math.max(0, (caret[0] ?? 0) - cut), Math.min(text.length, (caret[1] ?? 0) - cut)];
  return { text, caret: last > first ? [first, last] : null };
}

/** Older workers, and jobs of other services, may have written something else. */
function lastLines(failure: Failure): string[] {
  const lines: unknown = failure.detail?.tail;
  return Array.isArray(lines) ? lines.map(String) : [];
}

function causesOf(failure: Failure): FailureCause[] {
  const causes: unknown = failure.detail?.causes;
  return Array.isArray(causes) ? causes.filter((cause) => typeof cause === "object" && cause !== null) : [];
}

/** An exit code in words: `137` is a kill, often for memory. */
export function exitWords(code: number): string {
  const signal = code > 128 ? code - 128 : code < 0 ? -code : 0;
  const named: Record<number, string> = { 2: "SIGINT", 6: "SIGABRT", 9: "SIGKILL: out of memory?", 11: "SIGSEGV", 15: "SIGTERM" };
  if (signal && named[signal]) return `exit code ${code}, killed by ${named[signal]}`;
  return `exit code ${code}`;
}
