"""From task files to tasks: load, resolve, choose, change, check."""
