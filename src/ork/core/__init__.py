"""What should happen: pure decisions. No I/O, no clock, no randomness of its own."""
