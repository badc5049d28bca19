"""What every room needs and no field of study owns: checks of arguments, arrays and files,
memory, threads, and fits that are whole or not at all.

Imports the compiled code (`_core`) and nothing else of this package.
"""
