"""The kinds of model that come with the harness."""
