"""A model in the harness's own process that answers at once."""

from __future__ import annotations

from harness import Identity, ModelSettings, Reply, Request, Usage

ANSWER = Reply(text="ok", usage=Usage(prompt_tokens=500, completion_tokens=1))


class FreeModel:
    """Answers "ok" to everything."""

    def __init__(self, settings: ModelSettings) -> None:
        self.identity = Identity(kind="free", name="free")
        self.concurrency = settings.concurrency or 64
        self.occupies = None

    async def open(self) -> None:
        """Nothing to make ready."""

    async def close(self) -> None:
        """Nothing to give back."""

    async def ask(self, request: Request) -> Reply:
        """The same answer, whatever was asked."""
        return ANSWER
