"""The package that `harness new-plugin` writes: a benchmark that runs, is tested, and publishes.

`templates/` holds its files: `both/` for either form, `simple/` and `stages/` for one. In their
paths and texts `PACKAGE` and `__PACKAGE__` and the like stand for names. They end in `.tmpl`, so
that no tool takes them for code of this project.
"""
