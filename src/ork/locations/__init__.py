"""Where workflows come from: finding them in files without letting user code into our own processes."""
