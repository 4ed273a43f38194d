"""Fakes that are part of the package, and a simulator of whole installations. Checked by conformance and simulation tests."""

from __future__ import annotations
