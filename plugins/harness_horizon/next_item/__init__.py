"""Task 1: the next item of a history, by full ranking of all items."""
