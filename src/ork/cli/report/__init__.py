"""A run as one page that needs nothing else: no scripts, nothing from elsewhere, and nothing in it is taken for markup."""
