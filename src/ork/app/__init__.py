"""Wires an installation together: settings in, opened stores, executors, schedulers and the HTTP API out.

Backends are chosen here and nowhere else. Every other package is given what it needs.
"""
