"""The web UI: its built files, as the server sends them, and exports of the pages with their data."""
