"""Files that are copied into imported projects, where functions use them. They need only the standard library, and no Ork."""
