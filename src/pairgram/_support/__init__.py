"""What every other folder needs: checks of arguments and arrays, files, memory, threads, and fits
that leave an estimator unchanged if they fail.

This folder may import the compiled code (`_core`) and nothing else of this package.
"""
