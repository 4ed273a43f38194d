"""Code that several workflows of the project use."""
