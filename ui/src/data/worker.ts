/** Starts workers. Their addresses are the only use of Trusted Types in these pages: nothing else may become a script. */

interface Policy {
  createScriptURL(text: string): string;
}

interface TrustedTypes {
  createPolicy(name: string, rules: { createScriptURL: (text: string) => string }): Policy;
}

const rules = {
  createScriptURL(text: string): string {
    const url = new URL(text, import.meta.url);
    if (url.origin !== location.origin || !/\/[\w-]+-worker\.js$/.test(url.pathname)) throw new TypeError("not a worker of these pages");
    return url.href;
  },
};

let policy: Policy | undefined;

/** `newWorker("scan")` starts `log/scan.worker.ts`. */
export function newWorker(name: string): Worker {
  policy ??= (globalThis as { trustedTypes?: TrustedTypes }).trustedTypes?.createPolicy("ork", rules) ?? rules;
  return new Worker(policy.createScriptURL(`./${name}-worker.js`), { type: "module", name });
}
