"""Mutants: the protocol broken on purpose, one rule at a time. Each must be killed by a simulated world.

`make mutants` hunts all of them and prints which seed and which invariant killed each.
"""
