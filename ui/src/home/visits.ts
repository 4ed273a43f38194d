/** When this browser last showed the home page: failures since then are new to its user. */

import { keep, kept } from "../data/storage.ts";
import { DAY, HOUR } from "../health.ts";

/** `seen`: the end of the visit before this one. `last`: when the page was last open. Milliseconds; null if unknown. */
export interface Visits {
  seen: number | null;
  last: number | null;
}

/** A pause of an hour starts a new visit, so that going to a run and back does not hide what is new. */
export function continued(visits: Visits, now: number): Visits {
  const isNew = visits.last !== null && now - visits.last > HOUR;
  return { seen: isNew ? visits.last : visits.seen, last: now };
}

const LONGEST = 30 * DAY;

/** From when on failures are shown: since the last visit, at most 30 days; a day for somebody who comes first. */
export function newSince(visits: Visits, now: number): number {
  return visits.seen === null ? now - DAY : Math.max(visits.seen, now - LONGEST);
}

export function readVisits(): Visits {
  return { seen: time(kept("home.seen")), last: time(kept("home.last")) };
}

export function writeVisits(visits: Visits): void {
  keep("home.seen", visits.seen === null ? null : String(visits.seen));
  keep("home.last", visits.last === null ? null : String(visits.last));
}

function time(text: string | null): number | null {
  const found = Number(text ?? "");
  return text && Number.isFinite(found) && found > 0 ? found : null;
}
