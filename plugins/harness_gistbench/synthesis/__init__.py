"""Tools for logs of engagements: to make synthetic users of one, and to tell what one holds."""

TOOLS = {
    "synthesize": (
        "synthesize.run",
        "build synthetic users from a log of real ones, and compare the two",
    ),
    "describe": (
        "describe.run",
        "tell what a log holds: users, engagements by type, lengths, texts",
    ),
}
"""Name of the tool → its function in a module of this package, description."""
