"""What every other folder needs: checks of arguments and arrays, files, memory, threads, and fits
that leave an estimator unchanged if they fail. Only the compiled code is imported here.
"""
