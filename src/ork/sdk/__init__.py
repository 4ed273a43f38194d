"""The API for user code. Standard library only, and cheap to import."""
