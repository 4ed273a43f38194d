"""Telling people: what the outbox holds goes out by webhook, Slack, mail or any service that Apprise knows, and stays until it has."""
