"""What the worker asks of the operating system: identities and signals of processes, the tag by which the processes of an
attempt are found, and whether a process waited. Knows nothing of specs or documents.
"""
