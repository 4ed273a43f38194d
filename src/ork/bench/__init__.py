"""`ork bench`: measures costs, each together with a floor measured on the same machine at the same time."""
