/** Starts the pages. */

import "./base.ts";
import "./style.css";
import "./style/run.css";
import "./style/task.css";
import "./style/log.css";
import "./style/compare.css";
import "./style/parts.css";
import "./style/home.css";
import "./style/palette.css";
import "./style/runs.css";
import "./style/workflow.css";
import "./style/schedules.css";
import "./style/system.css";
import { computed, effect, untracked } from "@preact/signals";
import { render } from "preact";
import { startClock } from "./clock.ts";
import { isSignedOut, refreshSession, session, source, startSession } from "./data/session.ts";
import { startStream, streamState } from "./data/stream.ts";
import { startRouter } from "./router.ts";
import { loadFirstPage, Shell } from "./shell.tsx";
import { startShortcuts } from "./shortcuts.ts";
import { startTheme } from "./theme.ts";

void startSession();
startRouter();
loadFirstPage();
startClock();
startTheme();
startShortcuts();
const isSignedIn = computed(() => Boolean(session.value) && !isSignedOut.value);
// A stream belongs to a session: signing in again starts a new one. A snapshot does not change.
effect(() => (isSignedIn.value && source.canAct ? untracked(() => startStream(source)) : undefined));
// A server that comes back may be another version of Ork, or may no longer know the session.
let wasLost = false;
effect(() => {
  const state = streamState.value;
  if (state === "live" && wasLost) void refreshSession().catch(() => undefined);
  if (state === "live" || state === "lost") wasLost = state === "lost";
});
const root = document.getElementById("app");
if (root) render(<Shell />, root);
