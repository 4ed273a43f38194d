"""Calls the user's function, in any kind of process.

In: a spec and the attempt's documents. Out: an outcome (output, failure, metrics or jobs), which the caller reports. One call is made
of the same steps everywhere: set the environment, load, bind, call, encode (`invoke`). `task_process` is the process of one task: it
receives an order, makes the call, replies through a pipe and ends.
"""
