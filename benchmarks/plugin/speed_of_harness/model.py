"""A model in the harness's own process that answers at once."""

from __future__ import annotations

from harness import Identity, Model, ModelSettings, Reply, Request, Usage
from speed_of_harness.answers import answer
from speed_of_harness.clock import asking

USAGE = Usage(prompt_tokens=500, completion_tokens=1)


class FreeModel(Model):
    """Answers everything at once, published benchmarks so that they can be scored."""

    def __init__(self, settings: ModelSettings) -> None:
        name = settings.args.get("model", "free")
        self.identity = Identity(kind="free", name=name)
        self.concurrency = settings.concurrency or 64

    async def ask(self, request: Request) -> Reply:
        """The answer, at once."""
        asking()
        benchmark = request.topic.benchmark if request.topic is not None else ""
        return Reply(text=answer(benchmark, request.messages[-1].content), usage=USAGE)
