"""`python -m ork` is `ork`."""

from __future__ import annotations

from ork.cli.main import main

main()
