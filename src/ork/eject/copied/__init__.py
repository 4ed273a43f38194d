"""Files that are copied into ejected folders, where they run the tasks. They need only the standard library, and no Ork."""
