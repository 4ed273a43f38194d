/** Who are you? */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { asProblem, type Problem } from "../data/problem.ts";
import { isSignedOut, sessionProblem, signIn } from "../data/session.ts";
import { CommandLine, Prose } from "../parts/command.tsx";
import { TextField } from "../parts/form.tsx";
import { Mark } from "../parts/icons.tsx";

export default function SignIn(): JSX.Element {
  const [token, setToken] = useState("");
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(sessionProblem.value);
  const onSubmit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    try {
      await signIn(token.trim());
      setToken("");
    } catch (error) {
      setProblem(asProblem(error));
    }
    setBusy(false);
  };
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => form.current?.querySelector("input")?.focus(), []);
  return (
    <section class="sign-in">
      <Mark />
      <h1>{isSignedOut.value ? "Your session has ended" : "Sign in to Ork"}</h1>
      <p class="dim">{isSignedOut.value ? "Sign in again: the page stays as it is." : "The easiest way is a command, which opens these pages signed in:"}</p>
      {!isSignedOut.value && <CommandLine command="ork ui" />}
      <form ref={form} onSubmit={(event) => void onSubmit(event)}>
        <TextField
          label={isSignedOut.value ? "Token" : "Or paste a token"}
          type="password"
          value={token}
          onInput={setToken}
          mono
          required
          error={problem ? problem.detail || problem.title : null}
          hint={<>It is sent once and not kept in this browser. <code>ork token create</code> makes one.</>}
        />
        {problem?.hint && <p class="field-hint"><Prose text={problem.hint} /></p>}
        <button type="submit" class="button primary" disabled={isBusy || token.trim() === ""}>{isBusy ? "Signing in…" : "Sign in"}</button>
      </form>
    </section>
  );
}
