"""Sends alerts from the outbox in the store, by webhook, Slack, mail or Apprise, and keeps them until they are sent."""
