"""What user code may import. Standard library only, and cheap to load."""
