"""Comparisons of runs: which may be compared, their differences, and who is better."""
