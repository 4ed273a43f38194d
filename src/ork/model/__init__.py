"""The nouns: frozen data that every room shares. Nothing here does anything."""
