"""The documents that scheduler and worker exchange about each attempt, and the stores that keep them."""
