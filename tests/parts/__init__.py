"""The private parts of the package that tests name, gathered by room."""
