"""The contract between the harness and an embedder, which turns texts into vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from harness.base.errors import ModelError
from harness.contracts.identity import Identity
from harness.contracts.model import Model, Reply, Request

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LENGTH_SLACK = 1e-3
"""How far from 1 the length of a row may be: that of half-precision numbers."""


class Asker(Protocol):
    """Asks models as a run does, with its limits, retries and store."""

    async def ask(self, model: Model, request: Request) -> Reply:
        """The model's reply; ModelError if it gives none."""

    async def close(self) -> None:
        """Close every model that was asked."""


class EmbedderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that an embedder's factory receives."""

    args: Mapping[str, str]
    attempt_timeout: float = 600.0
    start_timeout: float = 3600.0
    """The seconds that a server may take to start, if the embedder starts one."""

    given_hosts: frozenset[str] | None = None
    """As for models: the hosts that the user's own command names, None for no limit."""

    asker: Asker | None = None
    """Asks the server of an embedder that has one; None if no server may be asked."""


class Embedder(ABC):
    """Turns texts into vectors. Creating it is cheap; `open` does the slow work.

    class Letters(Embedder):
        def __init__(self, settings: EmbedderSettings) -> None:
            self.identity = Identity(kind="letters", name="vowels")
            self.dimensions = 5

        async def embed(self, texts):
            counts = [[text.count(one) + 1 for one in "aeiou"] for text in texts]
            rows = np.array(counts, dtype=np.float32)
            return rows / np.linalg.norm(rows, axis=1, keepdims=True)
    """

    identity: Identity
    """Everything that decides the vectors: the weights' digest or revision, pooling, precision, the
    longest text. `identity.label` names the embedder in errors and tables."""

    dimensions: int = 0
    """The numbers of a vector; 0 before `open` if only the weights or the server know it."""

    occupies: str | None = None
    """The resource that only one open engine may hold at a time, such as "gpu"."""

    gpus: int = 0
    variables: tuple[str, ...] = ()
    """The environment variables that its keys and addresses come from, as in `Model`."""

    key_files: tuple[str, ...] = ()
    """The files that its keys come from, as in `Model`."""

    tokens: int = 0
    """The tokens that its server has counted so far; 0 without a server."""

    async def open(self) -> None:  # noqa: B027 - most need nothing
        """Load what is needed and set `dimensions`; called once, before the first `embed`.

        `self._model = SentenceTransformer("weights/small")`
        """

    async def close(self) -> None:  # noqa: B027 - most need nothing
        """Release all resources; the embedder may be opened again.

        `self._model = None`
        """

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row of length 1 for each text, in the same order.

        `rows = checked_rows(await embedder.embed(texts), texts, embedder)`
        """


def checked_rows(
    rows: NDArray[np.float32], texts: Sequence[str], embedder: Embedder
) -> NDArray[np.float32]:
    """The rows as an array of float32, if they are one row of length 1 for each text.

    ModelError, which names the embedder, for fewer or more rows, rows of another size, numbers that
    are not finite, and rows that are not of length 1.
    """
    import numpy as np

    found = np.ascontiguousarray(rows, dtype=np.float32)
    wanted = (len(texts), embedder.dimensions)
    if found.shape != wanted:
        shape = " x ".join(map(str, found.shape))
        raise _wrong(embedder, shape, f"{wanted[0]} x {wanted[1]}, a row for each text")
    # The sum of squares is not finite either where a number is not.
    squares = np.einsum("ij,ij->i", found, found)
    unfit = ~(np.abs(np.sqrt(squares) - 1) <= LENGTH_SLACK)
    if unfit.any():
        place = int(unfit.argmax())
        finite = np.isfinite(found[place]).all()
        length = (
            f"length {np.sqrt(squares[place]):.6g}" if finite else "a number that is not finite"
        )
        raise _wrong(embedder, f"{length} for {texts[place]!r}", "finite numbers, of length 1")
    return found


def vectors_text(rows: NDArray[np.float32]) -> str:
    """The text in which a model's reply holds vectors, a row for each message of the request."""
    return f"{len(rows)}:{b64encode(rows.astype('<f4').tobytes()).decode('ascii')}"


def vectors_in(text: str) -> NDArray[np.float32]:
    """The rows that `vectors_text` wrote into a reply."""
    import numpy as np

    many, _, numbers = text.partition(":")
    return np.frombuffer(b64decode(numbers), dtype="<f4").reshape(int(many), -1)


def _wrong(embedder: Embedder, found: str, expected: str) -> ModelError:
    return ModelError(
        "the embedder returned vectors that cannot be used",
        where=embedder.identity.label,
        found=found,
        expected=expected,
    )
