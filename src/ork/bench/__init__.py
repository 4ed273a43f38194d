"""`ork bench`: what things cost, each beside the floor that the same machine allows at the same moment."""
