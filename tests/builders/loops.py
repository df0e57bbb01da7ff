"""The event loop of a test."""

import asyncio


async def all_wait() -> None:
    """Let the event loop run until each task waits for an event or for time."""
    for _ in range(200):
        await asyncio.sleep(0)
