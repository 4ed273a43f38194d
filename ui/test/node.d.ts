declare module "node:test" {
  export function test(name: string, run: () => void | Promise<void>): void;
}
declare module "node:assert/strict" {
  const assert: {
    equal(actual: unknown, expected: unknown, message?: string): void;
    deepEqual(actual: unknown, expected: unknown, message?: string): void;
    ok(value: unknown, message?: string): void;
    throws(run: () => unknown, expected?: RegExp): void;
    rejects(run: Promise<unknown> | (() => Promise<unknown>), expected?: (error: unknown) => boolean): Promise<void>;
  };
  export default assert;
}
