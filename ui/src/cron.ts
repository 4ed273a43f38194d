/** Cron expressions in words: `0 2 * * *` → "every day at 02:00". What has no short sentence stays an expression. */

const DAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;
const SHORT_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"] as const;
const SHORT_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const MOST_TIMES = 4;

/** Five fields, or six with seconds in front, as the API has them. Returns the expression itself if there are no good words. */
export function cronInWords(cron: string): string {
  const fields = cron.trim().toUpperCase().split(/\s+/);
  if (fields.length === 6 && fields[0] === "0") fields.shift();
  const [minute, hour, day, month, weekday] = fields;
  if (fields.length !== 5 || !minute || !hour || !day || !month || !weekday) return cron;
  const time = timeInWords(minute, hour);
  const date = dateInWords(day, month, weekday);
  if (time === null || date === null) return cron;
  if (time.startsWith("every")) return date === "every day" ? time : `${time}, ${date}`;
  return `${date} ${time}`;
}

/** With the time zone, by its city: "every day at 02:00 Berlin". UTC has none to name but itself. */
export function scheduleInWords(cron: string, timezone: string): string {
  const words = cronInWords(cron);
  const place = timezone.split("/").at(-1)?.replaceAll("_", " ") ?? timezone;
  return /\d\d:\d\d/.test(words) || words === cron || /every (day|weekday|\w+day)/.test(words) ? `${words} ${place}` : words;
}

/** `at 02:00`, `every 5 minutes`, `every hour at :15`; null if there is nothing short to say. */
function timeInWords(minute: string, hour: string): string | null {
  const hours = within(hour);
  if (minute === "*") return hour === "*" ? "every minute" : hours && `every minute${hours}`;
  const everyMinutes = step(minute, 60);
  if (everyMinutes !== null) return hours === null ? null : `every ${everyMinutes === 1 ? "minute" : `${everyMinutes} minutes`}${hours}`;
  const minutes = numbers(minute, 0, 59);
  if (minutes === null) return null;
  const at = minutes.map((each) => `:${two(each)}`);
  const everyHours = step(hour, 24);
  if (hour === "*") return minutes.length === 1 && minutes[0] === 0 ? "every hour" : minutes.length <= MOST_TIMES ? `every hour at ${list(at)}` : null;
  if (everyHours !== null && minutes.length === 1) return `every ${everyHours} hours${minutes[0] === 0 ? "" : ` at ${at[0]}`}`;
  const named = numbers(hour, 0, 23);
  if (named === null || named.length * minutes.length > MOST_TIMES) {
    return hours !== null && hours !== "" && minutes.length === 1 ? `every hour${minutes[0] === 0 ? "" : ` at ${at[0]}`}${hours}` : null;
  }
  return `at ${list(named.flatMap((each) => minutes.map((part) => `${two(each)}:${two(part)}`)))}`;
}

/** ` from 09:00 to 17:59` for hours that are a range; nothing for all; null for others. */
function within(hour: string): string | null {
  if (hour === "*") return "";
  const range = /^(\d+)-(\d+)$/.exec(hour);
  if (range) return ` from ${two(Number(range[1]))}:00 to ${two(Number(range[2]))}:59`;
  return /^\d+$/.test(hour) ? ` from ${two(Number(hour))}:00 to ${two(Number(hour))}:59` : null;
}

function dateInWords(day: string, month: string, weekday: string): string | null {
  const months = monthInWords(month);
  if (months === null) return null;
  const isAnyDay = day === "*" || day === "?";
  const isAnyWeekday = weekday === "*" || weekday === "?";
  if (isAnyDay && isAnyWeekday) return months ? `every day in ${months}` : "every day";
  if (!isAnyDay && !isAnyWeekday) return null;
  if (isAnyDay) {
    const words = weekdaysInWords(weekday);
    return words && `every ${words}${months ? ` in ${months}` : ""}`;
  }
  if (day === "L") return `on the last day of ${months || "every month"}`;
  const everyDays = step(day, 31);
  if (everyDays !== null) return months ? null : `every ${everyDays} days`;
  const days = numbers(day, 1, 31);
  if (days === null || days.length > MOST_TIMES) return null;
  return `on the ${list(days.map(ordinal))} of ${months || "every month"}`;
}

function monthInWords(month: string): string | null {
  if (month === "*") return "";
  const found = numbers(named(month, SHORT_MONTHS, 1), 1, 12);
  return found && found.length <= MOST_TIMES ? list(found.map((each) => MONTHS[each - 1] ?? "")) : null;
}

function weekdaysInWords(weekday: string): string | null {
  const found = numbers(named(weekday, SHORT_DAYS, 0), 0, 7)?.map((each) => each % 7);
  if (!found) return null;
  const key = [...new Set(found)].sort().join("");
  if (key === "12345") return "weekday";
  if (key === "06") return "Saturday and Sunday";
  return key === "0123456" ? "day" : list([...new Set(found)].map((each) => DAYS[each] ?? ""));
}

function named(text: string, names: readonly string[], first: number): string {
  return text.replace(/[A-Z]{3}/g, (name) => (names.includes(name) ? String(names.indexOf(name) + first) : name));
}

/** `*` with a step of 5 → 5 if it divides the whole evenly; days of a month always count as even. */
function step(field: string, whole: number): number | null {
  const found = /^(?:\*|0)\/(\d+)$/.exec(field);
  const size = Number(found?.[1] ?? 0);
  return size > 0 && (whole === 31 || whole % size === 0) ? size : null;
}

/** `1,3-5` → [1, 3, 4, 5]; null if it is something else or out of bounds. */
function numbers(field: string, low: number, high: number): number[] | null {
  const found: number[] = [];
  for (const part of field.split(",")) {
    const range = /^(\d+)(?:-(\d+))?$/.exec(part);
    if (!range) return null;
    const [first, last] = [Number(range[1]), Number(range[2] ?? range[1])];
    if (first < low || last > high || last < first) return null;
    for (let each = first; each <= last; each++) found.push(each);
  }
  return found;
}

function list(words: readonly string[]): string {
  return words.length < 2 ? (words[0] ?? "") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;
}

function two(number: number): string {
  return String(number).padStart(2, "0");
}

function ordinal(number: number): string {
  const end = number % 100 >= 11 && number % 100 <= 13 ? "th" : (["th", "st", "nd", "rd"][number % 10] ?? "th");
  return `${number}${end}`;
}
