"""The code of a project: which files of its folder are code, their hash, and the Git commit they are at.

In: the folders that the tasks of a workflow load code from. Out: a `Code`, which becomes part of the workflow's version, and a
checkout of an earlier commit for runs with the same code."""
