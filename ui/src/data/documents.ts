/** The documents of a snapshot, by name: packed into the page itself, or files beside it. */

import { disconnected, Problem } from "./problem.ts";

export interface Documents {
  /** Only for names that the manifest has. */
  read(name: string): Promise<Uint8Array>;
}

/** `file`: the data are in the page. `folder`: they are in `data/` beside it. Undefined for pages of a server. */
export const snapshotKind: string | undefined = typeof document === "undefined" ? undefined : document.documentElement.dataset["snapshot"];

export async function openDocuments(): Promise<Documents> {
  return snapshotKind === "file" ? unpacked(await inflated(packedBytes())) : new Folder();
}

/** Files below `data/`, relative to the page. Each is fetched once. */
class Folder implements Documents {
  readonly #fetched = new Map<string, Promise<Uint8Array>>();

  read(name: string): Promise<Uint8Array> {
    const known = this.#fetched.get(name);
    if (known) return known;
    const fetched = fetchBytes(`data/${name}`);
    this.#fetched.set(name, fetched);
    fetched.catch(() => this.#fetched.delete(name));
    return fetched;
  }
}

async function fetchBytes(path: string): Promise<Uint8Array> {
  let response: Response;
  try {
    // The manifest names what is current, so it is asked for again; the others change only with it.
    response = await fetch(path, { cache: "no-cache" });
  } catch {
    throw disconnected();
  }
  if (response.ok) return new Uint8Array(await response.arrayBuffer());
  throw new Problem("failed", "A file of this snapshot is missing", `${path}: the server answered ${response.status}.`, "It may just be replaced by a newer one. Reload this page.");
}

function packedBytes(): Uint8Array {
  const text = document.getElementById("ork-snapshot")?.textContent?.trim() ?? "";
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

async function inflated(bytes: Uint8Array): Promise<Uint8Array> {
  const stream = new Blob([bytes as BlobPart]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** Four bytes with the length of the index, the index `[[name, size], …]` as JSON, then the documents in its order. */
export function unpacked(bytes: Uint8Array): Documents {
  const start = 4 + new DataView(bytes.buffer, bytes.byteOffset).getUint32(0);
  const index = JSON.parse(new TextDecoder().decode(bytes.subarray(4, start))) as [string, number][];
  const found = new Map<string, Uint8Array>();
  let at = start;
  for (const [name, size] of index) {
    found.set(name, bytes.subarray(at, at + size));
    at += size;
  }
  return {
    read: (name) => {
      const document = found.get(name);
      return document ? Promise.resolve(document) : Promise.reject(new Problem("failed", "A part of this snapshot is missing", name));
    },
  };
}
