"""What it means: a file checked as a whole, and the immutable workflow that comes of it."""
