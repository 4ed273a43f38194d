"""`ork prune`: what was built for tasks and nobody needs any more."""

from __future__ import annotations

import os
import time

import click

from ork.cli.errors import DONE
from ork.cli.session import current_settings, json_option, print_json, store_options

DAY_SECONDS = 86_400.0


@click.command(name="prune")
@click.option(
    "--days", type=click.FloatRange(min=0), default=30.0, show_default=True, help="Unused for how long.", metavar="N"
)
@json_option
@store_options
def prune_command(days: float, as_json: bool) -> int:
    """Remove environments and compiled programs that no task uses now or has used for a while.

    What is removed is built again when it is needed. Every build removes what has not been used for 30 days by itself.

    \b
    Example:  ork prune --days 7
    """
    from ork.worker.builds import SHELVES, prune

    home = current_settings().home
    now = time.time()
    removed = [folder for shelf in SHELVES for folder in prune(f"{home}/{shelf}", now, days * DAY_SECONDS)]
    if as_json:
        print_json({"removed": removed})
    else:
        for folder in removed:
            print(f"removed {os.path.relpath(folder)}")
        print(f"{len(removed)} removed." if removed else "Nothing to remove.")
    return DONE
