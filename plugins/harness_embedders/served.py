"""Embedders behind a server: the kinds of model `openai` and `vllm`, asked for vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from harness.base.errors import ModelError
from harness.contracts.embedder import Asker, Embedder, EmbedderSettings, vectors_in
from harness.contracts.model import Message, Model, ModelSettings, Request, Sampling
from harness.registry import load_plugins
from harness_embedders.arguments import check_known, count_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BATCH = 128
OPENAI = (
    "model", "base_url", "api_key_env", "api_key_file", "revision", "identity", "immutable",
    "concurrency", "extra_body", "azure_endpoint", "azure_deployment", "api_version",
    "max_answer_bytes", "batch",
)  # fmt: skip
"""The arguments of an `openai` embedder; extra_body.NAME is one too."""


def make(kind: str, settings: EmbedderSettings) -> Embedder:
    """The embedder behind the server of a kind of model, which is not asked yet."""
    given = dict(settings.args)
    if kind == "openai":
        plain = {name: one for name, one in given.items() if not name.startswith("extra_body.")}
        check_known(kind, plain, OPENAI)
    batch = count_of(kind, given, "batch", BATCH)
    given.pop("batch", None)
    model = (
        load_plugins()
        .model(kind)
        .factory(
            ModelSettings(
                args=given,
                attempt_timeout=settings.attempt_timeout,
                start_timeout=settings.start_timeout,
                embeds=True,
                given_hosts=settings.given_hosts,
            )
        )
    )
    assert settings.asker is not None, "an embedder behind a server needs one who asks it"
    return ServedEmbedder(model, settings.asker, batch=batch)


class ServedEmbedder(Embedder):
    """Sends the texts in batches, several at a time; `open` asks for the vector of one word."""

    def __init__(self, model: Model, asker: Asker, *, batch: int) -> None:
        self.identity = model.identity
        self.occupies, self.gpus = model.occupies, model.gpus
        self.variables, self.key_files = model.variables, model.key_files
        self._model = model
        self._asker = asker
        self._batch = batch

    async def open(self) -> None:
        """Learn how many numbers a vector has."""
        try:
            self.dimensions = self.dimensions or (await self._rows(["a"])).shape[1]
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Close the connections; a server that was started ends."""
        await self._asker.close()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row of length 1 for each text; ModelError if the server does not bring one."""
        import numpy as np

        starts = range(0, len(texts), self._batch)
        try:
            async with asyncio.TaskGroup() as group:
                parts = [texts[start : start + self._batch] for start in starts]
                asked = [group.create_task(self._rows(part)) for part in parts]
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        rows = [np.empty((0, self.dimensions), np.float32), *(one.result() for one in asked)]
        found = np.concatenate(rows, dtype=np.float32)
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    async def _rows(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The server's vectors of a batch."""
        messages = tuple(Message("user", text) for text in texts)
        request = Request(messages=messages, sampling=Sampling(), seed=0)
        reply = await self._asker.ask(self._model, request)
        self.tokens += 0 if reply.usage is None else reply.usage.prompt_tokens
        rows = vectors_in(reply.text)
        if self.dimensions and rows.shape[1] != self.dimensions:
            raise ModelError(
                "the server changed the size of its vectors",
                where=self.identity.label,
                found=f"{rows.shape[1]} numbers",
                expected=f"{self.dimensions}, as before",
            )
        return rows
