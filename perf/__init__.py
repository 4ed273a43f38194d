"""Measurements for people who work on Ork. Nothing here is part of the package, and no test depends on a figure of it."""
