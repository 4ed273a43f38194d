"""A stand-in for systemctl: shows and stops the timer units that the stand-in for systemd-run keeps."""

import os
import sys
from pathlib import Path

UNITS = Path(os.environ["FAKE_SYSTEMD"])
with (UNITS / "log").open("a") as log:
    log.write("ctl\n")
arguments = [each for each in sys.argv[1:] if each not in ("--user", "--all")]
match arguments:
    case ["is-system-running"]:
        print(os.environ.get("FAKE_SYSTEMD_STATE", "running"))
    case ["stop", unit]:
        if not (UNITS / unit).exists():
            print(f"Failed to stop {unit}: Unit {unit} not loaded.", file=sys.stderr)
            sys.exit(5)
        (UNITS / unit).unlink()
    case ["show", "--property=Id,Description,ActiveState", pattern]:
        blocks = [
            f"Id={unit.name}\nDescription={unit.read_text()}\nActiveState=active"
            for unit in sorted(UNITS.glob(pattern))
        ]
        print("\n\n".join(blocks))
    case _:
        print(f"Unknown command verb {arguments}.", file=sys.stderr)
        sys.exit(1)
