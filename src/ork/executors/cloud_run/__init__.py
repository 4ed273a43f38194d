"""Runs attempts as executions of Cloud Run Jobs. docs/adr/0015-cloud-run.md says how. Needs the extra `gcp`."""
