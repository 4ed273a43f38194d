"""A stand-in for systemd-run: keeps transient timer units as files, and refuses what systemd refuses."""

import os
import re
import sys
from pathlib import Path

UNITS = Path(os.environ["FAKE_SYSTEMD"])
KNOWN = (
    "--user", "--quiet", "--unit=", "--on-calendar=", "--on-active=", "--timer-property=AccuracySec=",
    "--timer-property=RemainAfterElapse=no", "--property=KillMode=process", "--property=CollectMode=inactive-or-failed",
    "--description=", "--working-directory=", "--setenv=",
)  # fmt: skip
TIMES = {
    "--on-calendar": re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"),
    "--on-active": re.compile(r"\d+(\.\d{1,6})?s"),
}


def fail(text: str) -> None:
    print(text, file=sys.stderr)
    sys.exit(1)


with (UNITS / "log").open("a") as log:
    log.write("run\n")
options, command = [], sys.argv[1:]
while command and command[0].startswith("--"):
    options.append(command.pop(0))
unknown = [each for each in options if not each.startswith(KNOWN)]
if unknown or not command:
    fail(f"systemd-run: unrecognized option '{unknown[0] if unknown else 'no command'}'")
given = dict(each.partition("=")[::2] for each in options)
times = [(name, pattern) for name, pattern in TIMES.items() if name in given]
if len(times) != 1 or not times[0][1].fullmatch(given[times[0][0]]):
    fail(f"Failed to parse timer value: {given}")
if not re.fullmatch(r"[A-Za-z0-9:_.@-]{1,240}", given["--unit"]):
    fail(f"Failed to mangle unit name {given['--unit']}: Invalid argument")
unit = UNITS / f"{given['--unit']}.timer"
if unit.exists():
    fail(f"Failed to start transient timer unit: Unit {unit.name} was already loaded or has a fragment file.")
if command[-3:] != ["-m", "ork", "tick"] or not os.path.isdir(given["--working-directory"]):
    fail("the command is not a tick in the project")
unit.write_text(given["--description"])
