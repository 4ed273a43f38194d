"""Requests that the scheduler makes on behalf of others: each is held to the rule in `ork.model.outbound`."""
