"""Where attempts run: each executor starts, finds and stops them somewhere."""
