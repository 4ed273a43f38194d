"""The named blocks of `queries/*.sql`."""

from __future__ import annotations

import os

from ork.state.sql import Queries

FOLDER = os.path.join(os.path.dirname(__file__), "queries")
sql = Queries(FOLDER).__getitem__  # called for every statement: not by way of a function of ours
