"""`ork chaos`: kills parts of a sandbox installation again and again, and checks the promises with a ledger of its own.

In: workflows, a number of kills, a seed. Out: a verdict. `ledger.py` is the judge's only source about what really ran; the chaos
tests use it as well.
"""
