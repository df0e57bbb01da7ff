"""A model whose requests are texts to embed, at any server with /embeddings."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Any

import msgspec

from harness.contracts.embedder import vectors_in, vectors_text
from harness.contracts.model import CallError, Model, ModelSettings, Reply, Request
from harness_models.openai import OpenAIModel
from harness_models.openai_args import OpenAIArgs, read_each
from harness_models.openai_screen import NO_SCREEN, Screen
from harness_models.openai_spread import spread
from harness_models.openai_wire import usage_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def make(settings: ModelSettings) -> Model:
    """The embedder that the arguments of an `openai` model describe; it is not open yet."""
    return spread(read_each(settings), EmbeddingModel, settings)


def read_embeddings(body: object, screen: Screen = NO_SCREEN) -> Reply:
    """The vectors in a server's body as the text of a reply; CallError if it holds none."""
    data = body.get("data") if isinstance(body, dict) else None
    counts = body.get("usage") if isinstance(body, dict) else None
    # Embedders complete nothing.
    usage = usage_of(
        {"completion_tokens": 0, **counts} if isinstance(counts, dict) else None, screen
    )
    if not isinstance(data, list) or not data:
        raise _bad("the answer holds no vectors", usage)
    try:
        rows = _rows(data)
    except (KeyError, TypeError, ValueError, OverflowError, binascii.Error) as error:
        what = screen.error(f"{type(error).__name__}: {error}")[:200]
        raise _bad(f"the answer holds vectors that cannot be read ({what})", usage) from None
    return Reply(text=vectors_text(rows), usage=usage)


def _rows(data: list[Any]) -> NDArray[np.float32]:
    """The vectors in the order of their texts; an error if one cannot be read or used."""
    import numpy as np

    if sorted(one["index"] for one in data) != list(range(len(data))):
        raise ValueError("their numbers are not those of the texts")
    numbers = [one["embedding"] for one in sorted(data, key=lambda one: one["index"])]
    with np.errstate(over="ignore"):
        rows = np.array(
            [
                np.frombuffer(b64decode(one, validate=True), dtype="<f4")
                if isinstance(one, str)
                else np.asarray(one, dtype="<f4")
                for one in numbers
            ]
        )
    if rows.ndim != 2 or not rows.size:
        raise ValueError("a vector is empty, or nested")
    if not np.isfinite(rows).all():
        raise ValueError("a number is not finite")
    if not rows.any(axis=1).all():
        raise ValueError("a vector holds only zeros")
    return rows


class EmbeddingModel(OpenAIModel):
    """One served embedder; a request's messages are the texts, and its sampling is not sent."""

    takes_batches = False
    asked_if_thinking = False
    thinking_switch = None
    _read = staticmethod(read_embeddings)

    def __init__(self, args: OpenAIArgs, settings: ModelSettings, **more: Any) -> None:
        super().__init__(msgspec.structs.replace(args, endpoint="embeddings"), settings, **more)

    def thinks(self) -> bool:
        """False: nothing is answered."""
        return False

    async def ask(self, request: Request) -> Reply:
        """The vectors of all texts of a request, or a CallError."""
        reply = await super().ask(request)
        found, texts = len(vectors_in(reply.text)), len(request.messages)
        if found != texts:
            raise _bad(f"the answer holds {found} vectors for {texts} texts", reply.usage)
        return reply

    def _body(self, request: Request) -> dict[str, Any]:
        return {
            **self._added,
            "model": self._args.model,
            "input": [turn.content for turn in request.messages],
            "encoding_format": "base64",
        }


def _bad(detail: str, usage: Any) -> CallError:
    return CallError("bad_response", detail, retryable=True, usage=usage)
