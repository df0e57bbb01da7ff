"""From records to numbers: scores, metrics, intervals, comparisons of runs."""
