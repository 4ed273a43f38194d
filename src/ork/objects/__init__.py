"""What is said between scheduler and worker: small documents of each attempt."""
