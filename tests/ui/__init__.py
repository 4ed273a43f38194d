"""The web UI in a real browser, on a real server and stores that `seeds` fills."""
