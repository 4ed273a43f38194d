"""Exports runs as OpenTelemetry traces, if enabled: a span per run, with a child span per attempt."""
