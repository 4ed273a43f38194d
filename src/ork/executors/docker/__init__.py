"""A container engine with Docker's API, and attempts as containers on it."""
