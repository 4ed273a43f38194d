"""Virtual time: a clock and a kernel for coroutines that wait, so that a day takes only as long as its events.

The simulator (`ork.testing`) and the time machine (`ork.time_machine`) drive the real scheduler with it.
"""
