"""Progress displays of a run, and its results as tables, reports and figures."""
