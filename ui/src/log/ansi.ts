/** Terminal output as text: colours become classes, everything else that steers a terminal is removed or shown. */

/** A piece of a line. `look` are classes of `style/log.css`; `isControl` marks a character that is shown by its name. */
export interface Span {
  text: string;
  look: string;
  isControl?: boolean;
}

const NAMES = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"] as const;
// CSI; OSC (links and titles) and other strings, which may lack their end; two-character sequences.
const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]?|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[PX^_][^\x1b]*(?:\x1b\\)?|[ -/]*[0-~]?)/g;
// Controls but tab, direction marks and overrides: they could make a line look like another.
const CONTROLS = /[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/g;

/** The text without sequences for terminals. */
export function plain(line: string): string {
  return line.includes("\x1b") ? line.replace(ESCAPES, "") : line;
}

/** What a terminal shows after carriage returns, and how many parts it has overwritten. */
export function afterReturns(line: string): { text: string; overwritten: number } {
  if (!line.includes("\r")) return { text: line, overwritten: 0 };
  const parts = line.split("\r").filter((part) => part !== "");
  return { text: parts.at(-1) ?? "", overwritten: Math.max(0, parts.length - 1) };
}

/** Each line starts without colours, because the lines before it may not be at hand. */
export function spans(line: string): Span[] {
  const found: Span[] = [];
  const style = new Style();
  let at = 0;
  if (line.includes("\x1b")) {
    for (const escape of line.matchAll(ESCAPES)) {
      addText(found, line.slice(at, escape.index), style.look);
      style.apply(escape[0]);
      at = escape.index + escape[0].length;
    }
  }
  addText(found, line.slice(at), style.look);
  return found;
}

/** Control characters as text: `^@`, `⟨U+202E⟩`. */
export function visible(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return `^${String.fromCodePoint(code + 0x40)}`;
  if (code === 0x7f) return "^?";
  return `⟨U+${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** The spans with the ranges of `marks` as spans of their own; the ranges count characters of `text(spans)`. */
export function marked(given: readonly Span[], marks: readonly (readonly [number, number])[]): Span[] {
  if (marks.length === 0) return [...given];
  const found: Span[] = [];
  let at = 0;
  let next = 0;
  for (const span of given) {
    let from = 0;
    while (from < span.text.length) {
      while (next < marks.length && (marks[next] as [number, number])[1] <= at + from) next += 1;
      const mark = marks[next];
      const inMark = mark !== undefined && mark[0] <= at + from;
      const until = mark === undefined ? span.text.length : Math.min(span.text.length, (inMark ? mark[1] : mark[0]) - at);
      found.push({ ...span, text: span.text.slice(from, until), look: inMark ? `${span.look} hit`.trim() : span.look });
      from = until;
    }
    at += span.text.length;
  }
  return found;
}

export function text(of: readonly Span[]): string {
  return of.map((span) => span.text).join("");
}

function addText(to: Span[], part: string, look: string): void {
  let at = 0;
  for (const control of part.matchAll(CONTROLS)) {
    if (control.index > at) to.push({ text: part.slice(at, control.index), look });
    to.push({ text: visible(control[0]), look: "control", isControl: true });
    at = control.index + control[0].length;
  }
  if (at < part.length) to.push({ text: part.slice(at), look });
}

/** Select Graphic Rendition: what `\x1b[1;31m` and the like switch on and off. */
class Style {
  #fore = "";
  #back = "";
  readonly #on = new Set<string>();

  get look(): string {
    return [this.#back ? `on-${this.#back}` : this.#fore, ...this.#on].filter(Boolean).join(" ");
  }

  apply(escape: string): void {
    const found = /^\x1b\[([\d;:]*)m$/.exec(escape);
    if (!found) return;
    const codes = (found[1] ?? "").split(/[;:]/).map((each) => Number(each || 0));
    while (codes.length) this.#take(codes.shift() ?? 0, codes);
  }

  #take(code: number, rest: number[]): void {
    if (code === 0) {
      this.#fore = this.#back = "";
      this.#on.clear();
    } else if (code in ON) this.#on.add(ON[code] ?? "");
    else if (code in OFF) for (const name of OFF[code] ?? []) this.#on.delete(name);
    else if ((code >= 30 && code <= 37) || (code >= 90 && code <= 97)) this.#fore = NAMES[code % 10] ?? "";
    else if ((code >= 40 && code <= 47) || (code >= 100 && code <= 107)) this.#back = NAMES[code % 10] ?? "";
    else if (code === 38) this.#fore = further(rest);
    else if (code === 48) this.#back = further(rest);
    else if (code === 39) this.#fore = "";
    else if (code === 49) this.#back = "";
  }
}

const ON: Record<number, string> = { 1: "bold", 2: "faint", 3: "italic", 4: "under", 9: "struck" };
const OFF: Record<number, readonly string[]> = { 22: ["bold", "faint"], 23: ["italic"], 24: ["under"], 29: ["struck"] };

/** Of 256 or all colours the nearest of eight: each of these can be read in both themes. */
function further(rest: number[]): string {
  const kind = rest.shift();
  if (kind === 2) return nearest(rest.shift() ?? 0, rest.shift() ?? 0, rest.shift() ?? 0);
  if (kind !== 5) return "";
  const code = rest.shift() ?? 0;
  if (code < 16) return NAMES[code % 8] ?? "";
  if (code >= 232) return code < 244 ? "black" : "white";
  const part = (size: number): number => (Math.floor((code - 16) / size) % 6) * 51;
  return nearest(part(36), part(6), part(1));
}

function nearest(red: number, green: number, blue: number): string {
  const most = Math.max(red, green, blue);
  if (most - Math.min(red, green, blue) < 40) return most < 128 ? "black" : "white";
  const bit = (value: number, place: number): number => (value > most * 0.6 ? place : 0);
  return NAMES[bit(red, 1) | bit(green, 2) | bit(blue, 4)] ?? "";
}
