"""Finds and reads workflows in files, folders and images, without running user code in this process."""
