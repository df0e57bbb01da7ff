"""A benchmark and a model that cost next to nothing, so that what is measured is the harness."""
