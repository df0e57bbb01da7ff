"""Tools for logs of engagements: build synthetic users from a log, and describe a log."""

TOOLS = {
    "synthesize": (
        "synthesize.run",
        "build synthetic users from a log of real ones, and compare the two",
    ),
    "describe": ("describe.run", "describe a log: users, engagements by type, lengths, texts"),
}
"""Name of the tool → its function in a module of this package, description."""
