/** Values that the browser keeps for these pages. A browser that keeps nothing is as good as an empty one. */

export function kept(key: string): string | null {
  try {
    return localStorage.getItem(`ork.${key}`);
  } catch {
    return null;
  }
}

/** Null removes the value. */
export function keep(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(`ork.${key}`);
    else localStorage.setItem(`ork.${key}`, value);
  } catch {
    // The choice holds for this page only.
  }
}
