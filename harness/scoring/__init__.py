"""From records to numbers: scores, metrics, intervals."""
