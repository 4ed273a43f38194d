"""The time machine: plays the schedules of a project over months of virtual time, with the real scheduler and state machine.

In: a project's store, which is only read, and a range of dates. Out: a report of what would happen in that range.
`copy_project` (project.py) reads workflows, limits and history; `play` (play.py) runs them in a store in memory, where
attempts take as long as in the history (script.py, executor.py); `make_report` (report.py) sums up what was recorded.
"""
