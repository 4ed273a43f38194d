"""One module per command or group of commands. A module is imported only when its command is used."""
