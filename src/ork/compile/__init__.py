"""Compiles a parsed definition: checks a file as a whole and returns an immutable workflow."""
