"""The command line: `ork`."""
