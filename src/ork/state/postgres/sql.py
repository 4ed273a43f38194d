"""The named blocks of `queries/*.sql`."""

from __future__ import annotations

import os

from ork.state.sql import Queries

FOLDER = os.path.join(os.path.dirname(__file__), "queries")
sql = Queries(FOLDER).__getitem__  # called for every statement: a function of our own would add a call
