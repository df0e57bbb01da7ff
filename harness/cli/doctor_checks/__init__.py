"""The checks of `harness doctor`: plain functions that yield findings."""
