"""Building what a task runs in: virtual environments and Rust binaries, once for all tasks that need the same.

In: the spec's `environment`, or its Rust source. Out: a folder under the builds, locked while it is in use.
"""
