"""What is said between scheduler and worker: small documents in a folder per attempt."""
