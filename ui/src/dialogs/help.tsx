/** The list of keyboard shortcuts. */

import type { JSX } from "preact";
import { activeShortcuts, areOn, type Shortcut, switchShortcuts } from "../shortcuts.ts";
import { CommandLine } from "../parts/command.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Checkbox } from "../parts/form.tsx";
import { Keys } from "../parts/keys.tsx";

export default function Help({ onClose }: { onClose: () => void }): JSX.Element {
  const groups = Map.groupBy(activeShortcuts(), (each: Shortcut) => each.group);
  return (
    <Dialog
      title="Keyboard"
      onClose={onClose}
      wide
      footer={<><Checkbox label="Shortcuts of single keys" checked={areOn.value} onChange={switchShortcuts} /><span class="push" /><CommandLine command="ork --help" /></>}
    >
      <div class="help">
        {[...groups].map(([group, shortcuts]) => (
          <section key={group}>
            <h3>{group}</h3>
            <dl>
              {shortcuts.map((each) => <div key={each.keys}><dt>{each.does}</dt><dd><Keys of={each.keys} /></dd></div>)}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}
