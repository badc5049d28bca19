"""Model files: their format, and what each kind must hold. Reading a file runs no code from it."""
