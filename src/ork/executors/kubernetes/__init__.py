"""Runs attempts as Jobs of Kubernetes. docs/adr/0023-kubernetes.md says how. Needs the extra `kubernetes`."""
