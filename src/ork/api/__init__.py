"""HTTP: the store for whoever is not on this machine. Nothing here runs user code."""
