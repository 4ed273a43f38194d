"""A run as one self-contained HTML page without scripts; all text in it is escaped."""
