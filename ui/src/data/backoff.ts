/** Seconds until the next try: 1, 2, 4 … 30, with up to a quarter more so that pages do not ask at the same time. */
export function pauseBefore(tries: number, random: () => number = Math.random): number {
  return Math.min(30, 2 ** Math.min(tries, 5)) * (1 + random() / 4);
}
