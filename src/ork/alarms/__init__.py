"""Alarms: who calls a tick when something is due while no scheduler runs.

`timers.py` is the contract of a service that calls once at a given time; `cloud_tasks.py` and `systemd.py` implement
it. `alarm.py` is what the rest of Ork uses: deduplicated wakes, and the alarms of a pass.
"""
