"""All calls to models: store, single flight, budget, limiter, retries, usage.

Nothing is imported here, so that importing `harness.calls.budget` does not import SQLite.
"""
