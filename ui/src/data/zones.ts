/** Days and clock times in a time zone, by the browser's own data. */

const FORMATS = new Map<string, Intl.DateTimeFormat>();
const DAY_MS = 86_400_000;

/** Days are text such as `2026-03-29`; times are milliseconds. */
export interface LocalTime {
  day: string;
  /** `02:00`. */
  clock: string;
}

/** The time on the clocks of a zone. A zone that the browser does not know is shown in UTC. */
export function localTime(time: number, zone: string): LocalTime {
  const text = formatOf(zone).format(time);
  return { day: text.slice(0, 10), clock: text.slice(-5) };
}

/** When a day starts in a zone. */
export function startOfDay(day: string, zone: string): number {
  const wanted = Date.parse(`${day}T00:00:00Z`);
  const first = wanted - offsetAt(wanted, zone);
  const second = wanted - offsetAt(first, zone);
  // Where midnight does not exist, the day starts when the clocks have gone forward.
  return localTime(second, zone).day < day ? first : second;
}

export function addDays(day: string, number: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + number * DAY_MS).toISOString().slice(0, 10);
}

export function dayOf(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}

/** Days from the first one on. */
export function daysFrom(day: string, number: number): string[] {
  return Array.from({ length: number }, (_, step) => addDays(day, step));
}

/** The Monday of the week, or the first of the month. */
export function startOf(unit: "week" | "month", day: string): string {
  if (unit === "month") return `${day.slice(0, 7)}-01`;
  const weekday = new Date(`${day}T00:00:00Z`).getUTCDay();
  return addDays(day, -((weekday + 6) % 7));
}

export function daysInMonth(day: string): number {
  const [year = 2000, month = 1] = day.split("-").map(Number);
  return new Date(Date.UTC(year, month, 0)).getUTCDate();
}

/** `Mon 9`, `November 2026`, `9 November 2026`. */
export function dayName(day: string, style: "short" | "month" | "long"): string {
  const given = { short: { weekday: "short", day: "numeric" }, month: { month: "long", year: "numeric" }, long: { weekday: "short", day: "numeric", month: "long", year: "numeric" } } as const;
  return new Date(`${day}T00:00:00Z`).toLocaleDateString("en-GB", { ...given[style], timeZone: "UTC" });
}

export function isDay(text: string | null): text is string {
  return /^\d{4}-\d\d-\d\d$/.test(text ?? "") && !Number.isNaN(Date.parse(`${text}T00:00:00Z`));
}

function offsetAt(time: number, zone: string): number {
  const { day, clock } = localTime(time, zone);
  return Date.parse(`${day}T${clock}:00Z`) - Math.floor(time / 60_000) * 60_000;
}

function formatOf(zone: string): Intl.DateTimeFormat {
  const found = FORMATS.get(zone);
  if (found) return found;
  const made = make(zone);
  FORMATS.set(zone, made);
  return made;
}

function make(zone: string): Intl.DateTimeFormat {
  const options = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", hourCycle: "h23" } as const;
  try {
    return new Intl.DateTimeFormat("sv-SE", { ...options, timeZone: zone });
  } catch {
    return new Intl.DateTimeFormat("sv-SE", { ...options, timeZone: "UTC" });
  }
}
