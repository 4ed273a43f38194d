/** Starts workers. Their addresses are the only use of Trusted Types in these pages: nothing else may become a script. */

import { WORKER_TEXTS } from "./worker-texts.ts";

interface Policy {
  createScriptURL(text: string): string;
}

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (text: string) => string }): Policy;
}

const rules = {
  /** A name of a worker in the page itself, or the address of a worker's file beside this one. */
  createScriptURL(text: string): string {
    const own = WORKER_TEXTS[text];
    if (own !== undefined) return URL.createObjectURL(new Blob([own], { type: "text/javascript" }));
    const url = new URL(text, import.meta.url);
    if (url.origin !== location.origin || !/\/[\w-]+-worker\.js$/.test(url.pathname)) throw new TypeError("not a worker of these pages");
    return url.href;
  },
};

let policy: Policy | undefined;

/** `newWorker("scan")` starts `log/scan.worker.ts`. */
export function newWorker(name: string): Worker {
  policy ??= (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy("ork", rules) ?? rules;
  const isInside = Object.hasOwn(WORKER_TEXTS, name);
  return new Worker(policy.createScriptURL(isInside ? name : `./${name}-worker.js`), { type: isInside ? "classic" : "module", name });
}
