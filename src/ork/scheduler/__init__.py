"""The scheduler: reads the store, decides, commits the decisions and acts on them."""
