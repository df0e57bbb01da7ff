"""Task files: loading, inheritance, selection, changes, checks."""
