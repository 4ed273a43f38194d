"""The measured process: the real scheduler on a real store, without other work."""
