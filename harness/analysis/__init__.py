"""What analyses of finished runs build on: result grids, run tables, human labels, user tables."""
