"""`ork bench`: measures costs, each compared with a floor measured on the same machine at the same time."""
