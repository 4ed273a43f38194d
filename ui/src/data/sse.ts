/** A parser of server-sent events (text/event-stream). */

export interface ServerEvent {
  event: string;
  data: string;
  /** The last id that the stream has named, until now. */
  id: string | null;
}

/** Takes the stream in pieces of any size and gives the events that are complete. */
export class EventParser {
  #rest = "";
  #event = "";
  #data: string[] = [];
  #id: string | null = null;

  push(text: string): ServerEvent[] {
    const found: ServerEvent[] = [];
    // A piece may end between \r and \n: the \r waits for what follows.
    const all = this.#rest + text;
    const end = all.endsWith("\r") ? all.length - 1 : all.length;
    const lines = all.slice(0, end).split(/\r\n|\n|\r/);
    this.#rest = (lines.pop() ?? "") + all.slice(end);
    for (const line of lines) {
      const event = this.#line(line);
      if (event) found.push(event);
    }
    return found;
  }

  #line(line: string): ServerEvent | null {
    if (line === "") return this.#dispatch();
    const colon = line.indexOf(":");
    if (colon === 0) return null;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.#event = value;
    else if (field === "data") this.#data.push(value);
    else if (field === "id" && !value.includes("\0")) this.#id = value;
    return null;
  }

  #dispatch(): ServerEvent | null {
    const [event, data] = [this.#event || "message", this.#data];
    this.#event = "";
    this.#data = [];
    return data.length ? { event, data: data.join("\n"), id: this.#id } : null;
  }
}
