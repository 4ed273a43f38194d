"""The web UI in a real browser: very large runs, a server on them, and what its pages are measured by."""
