"""JSON values and Python annotations: values become what a parameter asks for (`values`, `scalars`), and annotations become
descriptions that a process without the user's code can check against (`annotations`).
"""
