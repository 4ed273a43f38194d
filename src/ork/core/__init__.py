"""Pure decisions about runs: no I/O, no clock, no randomness."""
