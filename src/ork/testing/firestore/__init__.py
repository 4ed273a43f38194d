"""Firestore for simulations: its documented behaviour in memory, and faults between the store and it."""
