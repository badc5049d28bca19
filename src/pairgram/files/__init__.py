"""Model files: their format, what each kind must hold, and scikit-learn's transformers in them.

Reading a file runs no code from it.
"""
