"""Values that are not JSON: stores them when a function returns them, and reads them for its parameters.

In: a value of a library that the task's process has loaded, or a reference to a stored one. Out: a reference
(`ork.model.value_reference`), or the value in the type that an annotation asks for. Libraries are never imported to store a
value, only to read one. `codecs` has what is known of each type, `encode` writes, `stored` and `decode` read, `previews` makes
what people see of a value.
"""
