"""Parses YAML files into the model. Every mistake is reported with its position."""
