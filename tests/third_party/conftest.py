"""Keeps the tests of the packages here from being collected: they need the packages installed."""

collect_ignore_glob = ["*"]
