"""Telling people: what the outbox holds goes out by webhook, Slack or mail, and stays until it has."""
