"""The process that is measured: real scheduler, real store, nothing else going on."""
