"""Files that are copied into the sandbox. They run inside attempts and import nothing of Ork."""
