/** Turns the schedule of a workflow on or off. */

import type { JSX } from "preact";
import { source } from "../data/session.ts";
import { Action } from "../parts/action.tsx";
import { argument } from "../words.ts";

export function Switch({ name, isOn, onDone, small = true }: { name: string; isOn: boolean; onDone?: () => void; small?: boolean }): JSX.Element {
  return (
    <Action
      label={isOn ? "Turn off" : "Turn on"}
      small={small}
      kind={small ? "plain" : undefined}
      role="operator"
      command={`ork workflow ${isOn ? "disable" : "enable"} ${argument(name)}`}
      ask={isOn ? `${name} gets no new scheduled runs until it is turned on again. Its runs are kept, and it can be started by hand.` : undefined}
      run={() => source.act("PATCH /workflows/{name}", { name }, { enabled: !isOn })}
      done={isOn ? `${name} is off` : `${name} is on`}
      onDone={onDone}
    />
  );
}
