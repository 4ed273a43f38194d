"""Runs as OpenTelemetry traces, when somebody asked for them: a span per run and one below it per attempt."""
