"""Builds what tasks run in: virtual environments and Rust binaries, each once for all tasks that need the same.

In: the spec's `environment`, or its Rust source. Out: a folder below `builds`, locked while it is in use.
"""
