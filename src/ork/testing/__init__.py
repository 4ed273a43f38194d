"""Fakes that ship, and a whole installation from one seed. Kept honest by the conformance and simulation tests."""

from __future__ import annotations
