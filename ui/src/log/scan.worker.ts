/** Runs a Scanner beside the page, so that a slow pattern can be ended and nothing stands still. */

import { type Hit, type ScanOptions, Scanner } from "./scan.ts";

export type ToScan = { kind: "start"; options: ScanOptions } | { kind: "bytes"; bytes: Uint8Array } | { kind: "end" };
export interface FromScan {
  hits: Hit[];
  total: number;
  isEnd: boolean;
}

let scanner: Scanner | null = null;

addEventListener("message", ({ data }: MessageEvent<ToScan>) => {
  if (data.kind === "start") scanner = new Scanner(data.options);
  else if (scanner) {
    const hits = data.kind === "bytes" ? scanner.push(data.bytes) : scanner.end();
    postMessage({ hits, total: scanner.total, isEnd: data.kind === "end" } satisfies FromScan);
  }
});
