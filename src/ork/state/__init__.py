"""The state store: the durable state of runs, one contract with several implementations."""
