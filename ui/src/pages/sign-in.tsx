/** Who are you? */

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { SingleSignOn } from "../api.d.ts";
import { asProblem, type Problem } from "../data/problem.ts";
import { isSignedOut, sessionProblem, signIn, singleSignOn } from "../data/session.ts";
import { CommandLine, Prose } from "../parts/command.tsx";
import { TextField } from "../parts/form.tsx";
import { Mark } from "../parts/icons.tsx";
import { here } from "../router.ts";

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
  const provider = useSingleSignOn();
  const form = useRef<HTMLFormElement>(null);
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    // Not away from a field in which somebody types already: the provider may be known late.
    if (document.activeElement === document.body || document.activeElement === null) (link.current ?? form.current?.querySelector("input"))?.focus();
  }, [provider]);
  return (
    <section class="sign-in">
      <Mark />
      <h1>{isSignedOut.value ? "Your session has ended" : "Sign in to Ork"}</h1>
      {isSignedOut.value && <p class="dim">Sign in again: the page stays as it is.</p>}
      {provider && (
        // Under a page in which something may be typed, the sign-in gets a tab of its own; this one notices its end.
        <a ref={link} class="button primary" href={`${provider.url}?${new URLSearchParams({ back: here() })}`} target={isSignedOut.value ? "_blank" : "_self"} rel="noopener">Sign in with {provider.name}</a>
      )}
      {!isSignedOut.value && (
        <>
          <p class="dim">{provider ? "Where you have Ork's command line, this opens these pages signed in:" : "The easiest way is a command, which opens these pages signed in:"}</p>
          <CommandLine command="ork ui" />
        </>
      )}
      <form ref={form} onSubmit={(event) => void onSubmit(event)}>
        <TextField
          label={isSignedOut.value && !provider ? "Token" : "Or paste a token"}
          type="password"
          value={token}
          onInput={setToken}
          mono
          required
          error={problem ? problem.detail || problem.title : null}
          hint={<>It is sent once and not kept in this browser. <code>ork token create</code> makes one.</>}
        />
        {problem?.hint && <p class="field-hint"><Prose text={problem.hint} /></p>}
        <button type="submit" class={provider ? "button" : "button primary"} disabled={isBusy || token.trim() === ""}>{isBusy ? "Signing in…" : "Sign in"}</button>
      </form>
    </section>
  );
}

/** Null until the server has answered, too: a token can be pasted meanwhile. */
function useSingleSignOn(): SingleSignOn | null {
  const [found, setFound] = useState<SingleSignOn | null>(null);
  useEffect(() => {
    void singleSignOn().then(setFound);
  }, []);
  return found;
}
