"""The web UI: its built files, as the server sends them."""
