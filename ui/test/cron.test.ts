import assert from "node:assert/strict";
import { test } from "node:test";
import { cronInWords, scheduleInWords } from "../src/cron.ts";

const WORDS: Record<string, string> = {
  "* * * * *": "every minute",
  "*/5 * * * *": "every 5 minutes",
  "0 * * * *": "every hour",
  "15 * * * *": "every hour at :15",
  "0,30 * * * *": "every hour at :00 and :30",
  "0 */6 * * *": "every 6 hours",
  "0 2 * * *": "every day at 02:00",
  "30 6,18 * * *": "every day at 06:30 and 18:30",
  "0 9 * * 1-5": "every weekday at 09:00",
  "0 9 * * MON-FRI": "every weekday at 09:00",
  "0 9 * * SUN,SAT": "every Saturday and Sunday at 09:00",
  "0 9 * * 7": "every Sunday at 09:00",
  "*/10 9-17 * * 1-5": "every 10 minutes from 09:00 to 17:59, every weekday",
  "0 0 1 * *": "on the 1st of every month at 00:00",
  "0 0 2,3,11 1,7 *": "on the 2nd, 3rd and 11th of January and July at 00:00",
  "0 12 * 12 *": "every day in December at 12:00",
  "0 0 L * *": "on the last day of every month at 00:00",
  "0 0 2 * * *": "every day at 02:00",
};

test("common expressions become a sentence", () => {
  for (const [cron, words] of Object.entries(WORDS)) assert.equal(cronInWords(cron), words, cron);
});

test("what has no short sentence stays an expression", () => {
  for (const cron of ["*/7 * * * *", "0 0 1 * 1", "0 0 * * MON#2", "30 0 2 * * *", "what", "", "61 * * * *", "1,2,3,4,5 * * * *"]) {
    assert.equal(cronInWords(cron), cron);
  }
});

test("the time zone is named where it matters", () => {
  assert.equal(scheduleInWords("0 2 * * *", "Europe/Berlin"), "every day at 02:00 Berlin");
  assert.equal(scheduleInWords("0 2 * * *", "America/New_York"), "every day at 02:00 New York");
  assert.equal(scheduleInWords("*/5 * * * *", "UTC"), "every 5 minutes");
});
