"""The one door to models: store, single flight, budget, limiter, retries, usage.

Nothing is imported here, so that settings can name `harness.calls.policy` without paying for
SQLite: import from the modules.
"""
