"""One file per command, or per family of commands; each is imported only when it is used."""
