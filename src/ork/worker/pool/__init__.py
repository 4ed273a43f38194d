"""Processes that are used again, so that a small task does not pay for starting an interpreter.

In: requests of an executor, through sockets. Out: the documents of attempts, and short messages about them. `fork_server` forks
workers; a `reusable_worker` takes one attempt after the other and has functions called by forks of a `task_fork_server`, or, with
`isolation: shared`, by a `shared_process`. Everything here is an optimisation: an attempt that nobody takes is started as a new process.
"""
