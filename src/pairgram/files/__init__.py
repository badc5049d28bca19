"""Model files: their format, what each kind of file must hold, and scikit-learn's transformers in
them. Reading runs no code from a file.
"""
