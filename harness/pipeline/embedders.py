"""Embedders as SPECs name them, and how those behind a server are asked outside a run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from harness.base.errors import ModelError, PluginError
from harness.base.named_functions import named_function
from harness.calls.client import Client
from harness.calls.retry import Patience
from harness.calls.store import Store, default_path
from harness.contracts.embedder import Asker, Embedder, EmbedderSettings, checked_rows
from harness.contracts.model import Model, Reply, Request
from harness.pipeline.settings import hosts_in, parse_spec
from harness.registry import load_plugins, made

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_log = logging.getLogger(__name__)


class ToolAsker(Asker):
    """Asks models for a tool, or inside another model.

    The store in the file `store` has the replies of models whose answers may leave a run; without
    it, and for other models, every process asks again.
    """

    def __init__(self, *, patience: Patience | None = None, store: Path | None = None) -> None:
        self._patience = patience
        self._file = store
        self._store: Store | None = None
        self._client: Client | None = None

    async def ask(self, model: Model, request: Request) -> Reply:
        """The model's reply; ModelError if it gives none after all retries."""
        if self._client is None:
            if self._file is not None and model.identity.scope == "everywhere":
                self._store = Store.open(self._file, warn=_log.warning)
            self._client = Client(
                store=self._store,
                run_id=uuid4().hex,
                patience=self._patience,
                announce=_log.warning,
            )
        answer = await self._client.ask(model, request, role="embedder", stage="embed")
        if answer.reply is not None:
            return answer.reply
        assert answer.failure is not None
        raise ModelError(
            "the server brought no vectors",
            where=model.identity.label,
            found=f"{answer.failure.cause}: {answer.failure.detail}",
        )

    async def close(self) -> None:
        """Close every model that was asked, and the store."""
        client, self._client = self._client, None
        store, self._store = self._store, None
        try:
            if client is not None:
                await client.close()
        finally:
            if store is not None:
                store.close()


def embed_texts(spec: str, texts: Sequence[str]) -> NDArray[np.float32]:
    """A row for each text by the embedder that a SPEC names, opened and closed for them."""
    embedder = named_embedder(spec)

    async def rows() -> NDArray[np.float32]:
        try:
            await embedder.open()
            return checked_rows(await embedder.embed(texts), texts, embedder)
        finally:
            await embedder.close()

    return asyncio.run(rows())


def embedding_of(named: str, *, option: str) -> Callable[[Sequence[str]], Any]:
    """What an option names: an embedder by its SPEC, or else a function as `module:function`."""
    if named.partition(":")[0] in load_plugins().embedders:
        return partial(embed_texts, named)
    return named_function(named, option=option)


def named_embedder(
    spec: str,
    *,
    asker: Asker | None = None,
    given_hosts: frozenset[str] | None = None,
    patience: Patience | None = None,
) -> Embedder:
    """The embedder that a SPEC names; it is not open yet.

    `given_hosts` are the hosts of the user's own command; without it, the SPEC counts as typed.
    """
    patience = patience or Patience()
    parsed = parse_spec(spec)
    registration = load_plugins().embedder(parsed.kind)
    hosts = hosts_in(parsed.args.values()) if given_hosts is None else given_hosts
    settings = EmbedderSettings(
        args=parsed.args,
        attempt_timeout=patience.attempt_timeout,
        start_timeout=patience.start_timeout,
        given_hosts=hosts,
        asker=asker or ToolAsker(patience=patience, store=default_path()),
    )
    embedder = made(registration, settings)
    if not isinstance(embedder, Embedder):
        raise PluginError(
            f"the factory of the kind of embedder {parsed.kind!r} returned no embedder",
            found=type(embedder).__name__,
            expected="an instance of a subclass of harness.Embedder",
        )
    return embedder
