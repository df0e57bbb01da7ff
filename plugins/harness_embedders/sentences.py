"""Embedders of sentence-transformers, and plain encoders such as BLaIR with CLS or mean pooling."""

from __future__ import annotations

import asyncio
import hashlib
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.base.errors import HarnessError, ModelError
from harness.contracts.embedder import Embedder, EmbedderSettings
from harness.contracts.identity import Identity
from harness_embedders.arguments import bad, check_known, count_of, one_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

KIND = "sentence-transformers"
HUB_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")
ARGUMENTS = ("model", "revision", "pooling", "max_length", "dtype", "device", "batch")
POOLINGS = ("cls", "mean")
DTYPES = ("float32", "float16", "bfloat16")
BATCH = 64
LENGTH = 512
"""The longest text in tokens, if neither the argument nor the weights' settings name another."""

SETTINGS = "modules.json"
"""The file that makes a folder of weights one of sentence-transformers."""

NOT_NEEDED = ["onnx/*", "openvino/*", "*.onnx", "*.h5", "*.ot", "*.msgpack", "*.gguf"]
"""Files of a repository in formats that are not loaded."""

HUB_SECONDS = 10.0
FAIRSEQ_PAD = 1
"""The number of the padding token in models whose positions are counted from the one after it."""


@dataclass(frozen=True, kw_only=True)
class SentenceArgs:
    """The parsed arguments; `folder` or a `name` at the hub with its `commit` has the weights."""

    name: str
    folder: Path | None
    commit: str | None
    pooling: str | None
    max_length: int | None
    dtype: str
    device: str | None
    batch: int


def make(kind: str, settings: EmbedderSettings) -> Embedder:
    """The embedder that the arguments describe; weights are loaded by `open`."""
    return SentenceEmbedder(read_args(settings))


def read_args(settings: EmbedderSettings) -> SentenceArgs:
    """The arguments, checked as far as is possible without loading anything."""
    given = settings.args
    check_known(KIND, given, ARGUMENTS)
    if "model" not in given:
        raise bad(KIND, "no model", f"{KIND}:NAME or {KIND}:FOLDER")
    if find_spec("sentence_transformers") is None:
        raise ModelError(
            "the package sentence-transformers is not installed",
            where=KIND,
            hint="pip install 'user-understanding-harness[embed]'",
        )
    folder, commit = Path(given["model"]).expanduser(), None
    if not folder.is_dir():
        if not re.fullmatch(r"[\w-][\w.-]*(/[\w.-]+)?", given["model"]):
            raise bad(KIND, f"model={given['model']}", "an existing folder, or a name at the hub")
        commit = commit_of(given["model"], given.get("revision"))
    elif "revision" in given:
        expected = "no revision=: a folder holds a single one"
        raise bad(KIND, f"revision={given['revision']}", expected)
    return SentenceArgs(
        name=given["model"] if commit else folder.resolve().name,
        folder=None if commit else folder,
        commit=commit,
        pooling=one_of(KIND, given, "pooling", POOLINGS),
        max_length=count_of(KIND, given, "max_length", LENGTH) if "max_length" in given else None,
        dtype=one_of(KIND, given, "dtype", DTYPES) or DTYPES[0],
        device=given.get("device"),
        batch=count_of(KIND, given, "batch", BATCH),
    )


class SentenceEmbedder(Embedder):
    """Loads the weights into this process; one batch of texts is embedded at a time."""

    def __init__(self, args: SentenceArgs) -> None:
        weights = {} if args.folder is None else {"weights": weights_digest(args.folder)}
        self.identity = Identity(
            kind=KIND,
            name=args.name,
            details={
                **(weights or {"revision": args.commit}),
                "pooling": args.pooling or "default",
                "max_length": args.max_length or "default",
                "dtype": args.dtype,
            },
        )
        self.occupies = occupied_by(args.device)
        self.gpus = 0 if self.occupies is None else 1
        self.variables = HUB_TOKENS
        self._args = args
        self._model: SentenceTransformer | None = None
        self._one_at_a_time = asyncio.Lock()

    async def open(self) -> None:
        """Load the weights, fetched from the hub if necessary; ModelError if that fails."""
        if self._model is None:
            try:
                self._model = await asyncio.to_thread(load, self._args)
            except Exception as error:  # the libraries raise many types
                raise self._failed("the weights cannot be loaded", error) from error
            self.dimensions = self._model.get_embedding_dimension() or 0

    async def close(self) -> None:
        """Forget the weights, and give the GPU's memory back."""
        if self._model is not None:
            import torch

            self._model = None
            if torch.cuda.is_available():
                torch.cuda.empty_cache()

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row of length 1 for each text."""
        if self._model is None:
            raise RuntimeError("embed() was called before open()")
        async with self._one_at_a_time:
            try:
                return await asyncio.to_thread(self._rows, self._model, list(texts))
            except RuntimeError as error:
                failed = self._failed("the texts cannot be embedded", error)
                failed.hint = f"with less memory: batch=N, which is {self._args.batch}"
                raise failed from error

    def _rows(self, model: SentenceTransformer, texts: list[str]) -> NDArray[np.float32]:
        import numpy as np

        rows = model.encode(
            texts, batch_size=self._args.batch, convert_to_tensor=True, show_progress_bar=False
        )
        found = rows.float().cpu().numpy().reshape(len(texts), self.dimensions)
        # In float32, whatever the weights: numbers of 16 bits would not have the length 1.
        return found / np.linalg.norm(found, axis=1, keepdims=True)

    def _failed(self, problem: str, error: Exception) -> HarnessError:
        if isinstance(error, HarnessError):
            return error
        found = f"{type(error).__name__}: {' '.join(str(error).split())}"
        return ModelError(problem, where=self.identity.label, found=found)


def load(args: SentenceArgs) -> SentenceTransformer:
    """The model of the arguments, in evaluation mode; code in its folder is not run."""
    from huggingface_hub import snapshot_download
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    folder = args.folder
    if folder is None:
        fetched = snapshot_download(args.name, revision=args.commit, ignore_patterns=NOT_NEEDED)
        folder = Path(fetched)
    weights: dict[str, Any] = {"dtype": args.dtype}
    plain = not (folder / SETTINGS).is_file()
    if plain:
        encoder = Transformer(str(folder), model_kwargs=weights)
        pooling = Pooling(encoder.get_embedding_dimension(), args.pooling or POOLINGS[0])
        model = SentenceTransformer(modules=[encoder, pooling], device=args.device)
    else:
        model = SentenceTransformer(
            str(folder), model_kwargs=weights, device=args.device, trust_remote_code=False
        )
        for module in model:
            if isinstance(module, Pooling) and args.pooling is not None:
                module.pooling_mode = args.pooling
    most = longest_text(getattr(model[0], "config", None))
    own = LENGTH if plain else model.max_seq_length
    length = args.max_length or min((one for one in (own, most) if one), default=None)
    if length is not None:
        if most is not None and length > most:
            raise bad(KIND, f"max_length={length}", f"at most {most}, which the weights can read")
        model.max_seq_length = length
    return model.eval()


def longest_text(config: Any) -> int | None:
    """The tokens that an encoder has positions for, None if its settings do not limit them."""
    positions = getattr(config, "max_position_embeddings", None)
    if not isinstance(positions, int) or positions < 1:
        return None
    padding = getattr(config, "pad_token_id", None)
    return positions - FAIRSEQ_PAD - 1 if padding == FAIRSEQ_PAD else positions


def occupied_by(device: str | None) -> str | None:
    """The resource of a device: a GPU where one is named or can be expected."""
    if device is None:
        return "gpu" if shutil.which("nvidia-smi") else None
    name, _, number = device.partition(":")
    return None if name != "cuda" else f"gpu:{number}" if number else "gpu"


def weights_digest(folder: Path) -> str:
    """A digest of all files in a folder of weights, with their names."""
    found = hashlib.blake2b(digest_size=16)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.name.startswith(".") and path.suffix != ".md":
            found.update(path.relative_to(folder).as_posix().encode() + b"\0")
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "blake2b").digest())
    return found.hexdigest()


def commit_of(name: str, revision: str | None) -> str:
    """The commit of a revision, from the hub or its cache; ModelError if neither knows it."""
    from huggingface_hub import HfApi, snapshot_download

    try:
        return str(HfApi().model_info(name, revision=revision, timeout=HUB_SECONDS).sha)
    except Exception as error:  # no network, or no such repository
        with suppress(Exception):
            return Path(snapshot_download(name, revision=revision, local_files_only=True)).name
        raise ModelError(
            "the weights are in no folder of this name, at the hub or in its cache",
            where=f"{KIND}:{name}",
            found=f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}",
            hint="for private repositories, set HF_TOKEN in the environment",
        ) from error
