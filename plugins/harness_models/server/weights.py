"""Identifies the weights behind a model's name, and reads their settings."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.base.errors import ModelError
from harness.base.hashing import digest, digest_bytes
from harness.contracts.identity import SOFTWARE, Identity
from harness_models.arguments import WeightsArgs, bad
from harness_models.chat_template import SWITCHES, lets_think
from harness_models.openai import form_of
from harness_models.openai_args import OpenAIArgs, request_details

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
SMALL = (".json", ".jinja", ".txt", ".model", ".py")
"""Files next to the weights that decide answers: settings, tokenizer, template, code."""

TEMPLATES = (
    "chat_template.jinja",
    "chat_template.json",
    "additional_chat_templates",
    "tekken.json",
)
"""The last is the tokenizer of Mistral's models, which holds their template."""

TOKENIZER = "tokenizer_config.json"
INDEX = "model.safetensors.index.json"
ELSEWHERE = re.compile(r"(s3|gs|az)://\S+")
"""Addresses of weights that a server can fetch from object stores."""

QUANTIZED = re.compile(r"[\w-][\w.-]*/[\w.-]+:[\w.-]+")
MISTRAL = "params.json"
"""The settings of a checkpoint in Mistral's own format."""

META = "__metadata__"
"""The entry of a safetensors header that is no tensor."""

BYTES = {"F64": 8, "I64": 8, "U64": 8, "I32": 4, "U32": 4, "F32": 2, "F16": 2, "BF16": 2, "I16": 2}
"""Bytes of a loaded parameter by type, 1 for other types."""

CONTEXT = "max_position_embeddings"
"""The number of tokens that a model supports, in its config."""

LONGEST_CONTEXT = 100_000
"""The limit for models that support more: beyond it, one prompt takes the memory of many."""

LONGEST_HEADER = 100_000_000
HUB_SECONDS = 10.0


@dataclass(frozen=True)
class Weights:
    """The weights of a name: in a `folder` or a GGUF file, else a `revision` on the hub.

    `commit` is that of the revision, as far as it is known.
    """

    name: str
    folder: Path | None = None
    revision: str | None = None
    commit: str | None = None

    def pinned(self) -> Weights:
        """The same weights at the commit that the hub or its cache has now."""
        if self.folder is not None:
            return self
        commit = commit_of(self.name, self.revision)
        return replace(self, commit=commit, revision=commit or self.revision)

    def text(self, name: str) -> str | None:
        """The text of a small file; None if it does not exist or cannot be fetched."""
        folder = Path(self.name).expanduser()
        try:
            if folder.is_dir():
                return (folder / name).read_text("utf-8")
            from huggingface_hub import hf_hub_download

            file = hf_hub_download(self.name, name, revision=self.revision)
            return Path(file).read_text("utf-8")
        except Exception:  # the hub's client raises many types, and the server reports it better
            return None

    def settings(self, name: str) -> dict[str, Any]:
        """The content of a settings file; empty if it does not exist or cannot be fetched."""
        with suppress(ValueError):
            found = json.loads(self.text(name) or "{}")
            return found if isinstance(found, dict) else {}
        return {}

    def set_in(self, file: str, name: str) -> Any:
        """A value of a settings file, for a multimodal model also of its text part; else None."""
        settings = self.settings(file)
        parts = (part for part in (settings, settings.get("text_config")) if isinstance(part, dict))
        return next((part[name] for part in parts if part.get(name) is not None), None)

    def number(self, name: str) -> int | None:
        """A whole number of the model's config; None if it has none."""
        found = self.set_in("config.json", name)
        return found if isinstance(found, int) else None

    def end_tokens(self) -> list[int]:
        """The ids of the tokens that end an answer; empty if the model's settings have none."""
        found = self.set_in("generation_config.json", "eos_token_id")
        found = self.set_in("config.json", "eos_token_id") if found is None else found
        return found if isinstance(found, list) else [] if found is None else [found]

    def here(self) -> Path | None:
        """The folder or file of the weights, also in the hub's cache, if all of them are there.

        Of `OWNER/NAME:TAG`, those are the files with the tag in their names.
        """
        if self.folder is not None:
            return self.folder
        from huggingface_hub import constants, snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

        name, _, tag = self.name.partition(":")
        try:
            found = snapshot_download(
                name, revision=self.revision, cache_dir=constants.HF_HUB_CACHE,
                local_files_only=True,
            )  # fmt: skip
        except (HFValidationError, LocalEntryNotFoundError):
            return None
        named = [file for file in files_of(Path(found)) if tag.lower() in file.name.lower()]
        return Path(found) if named else None

    def size(self) -> int | None:
        """The bytes that the loaded weights take; None if unknown.

        Servers load weights of 32 bits in half precision.
        """
        place = self.here()
        if place is None:
            return self._size_on_hub()
        if place.is_file():
            return place.stat().st_size
        there = Weights(str(place))
        total = there.settings(INDEX).get("metadata", {}).get("total_size")
        files = files_of(place)
        size = total if isinstance(total, int) else sum(file.stat().st_size for file in files)
        config = there.settings("config.json")
        kind = config.get("dtype") or config.get("torch_dtype")
        return (size // 2 if kind == "float32" else size) or None

    def _size_on_hub(self) -> int | None:
        from huggingface_hub import HfApi

        try:
            about = HfApi().model_info(
                self.name, revision=self.revision, files_metadata=True, timeout=HUB_SECONDS
            )
        except Exception:  # the hub's client raises many types, and the server reports it better
            return None
        if about.safetensors is not None:
            counts = about.safetensors.parameters.items()
            return sum(count * BYTES.get(kind, 1) for kind, count in counts)
        sizes = {each.rfilename: each.size or 0 for each in about.siblings or ()}
        by_kind = (sum(sizes[name] for name in sizes if name.endswith(one)) for one in WEIGHTS)
        return next((size for size in by_kind if size), None)

    def check_template(self) -> None:
        """Raise ModelError if the weights, as far as they are here, lack a chat template."""
        if without := self._without_template():
            raise ModelError(
                "the checkpoint has no chat template, so it cannot answer messages",
                where=str(without),
                expected="chat_template.jinja, or chat_template in tokenizer_config.json",
                hint="give the template that it was trained with: chat_template=FILE.jinja",
            )

    def _without_template(self) -> Path | None:
        if self.folder is not None:  # a GGUF file holds its template
            has_none = self.folder.is_dir() and not has_chat_template(self.folder)
            return self.folder if has_none else None
        if self.commit is None:
            return None
        from huggingface_hub import constants, try_to_load_from_cache

        settings, template = (
            try_to_load_from_cache(
                self.name, file, revision=self.commit, cache_dir=constants.HF_HUB_CACHE
            )
            for file in (TOKENIZER, TEMPLATES[0])
        )
        if not isinstance(settings, str) or has_chat_template(Path(settings).parent):
            return None
        # Online, a file that the cache does not know may still exist on the hub.
        return Path(settings) if constants.HF_HUB_OFFLINE or template is not None else None


def folder_identity(folder: Path) -> str:
    """A digest of a folder or file of weights, which changes when a file does.

    Weights are too large to read: their headers, sizes and times enter instead. Small files enter
    whole.
    """
    parts: dict[str, Any] = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else (folder,):
        if path.suffix in WEIGHTS and path.is_file():
            status = path.stat()
            header = ""
            if path.suffix == ".safetensors":
                with path.open("rb") as file:
                    start = file.read(8)
                    length = min(int.from_bytes(start, "little"), LONGEST_HEADER)
                    header = digest_bytes(start + file.read(length))
            parts[path.name] = [status.st_size, status.st_mtime_ns, header]
        elif path.suffix in SMALL and path.is_file():
            parts[path.name] = digest_bytes(path.read_bytes())
    return digest(parts)[:16]


def files_of(folder: Path) -> list[Path]:
    """The files of a folder's weights; none if one of them is missing."""
    named = Weights(str(folder)).settings(INDEX).get("weight_map")
    if isinstance(named, dict) and named:
        files = [folder / str(name) for name in set(named.values())]
        return files if all(file.is_file() for file in files) else []
    for suffix in WEIGHTS:
        if found := [file for file in folder.glob(f"*{suffix}") if file.is_file()]:
            return found
    return []


def weights_identity(
    kind: str,
    args: WeightsArgs,
    weights: Weights,
    *,
    speed_args: Collection[str],
    software: str | None,
) -> Identity:
    """The identity of served weights: the weights, and all settings that decide the answers.

    `speed_args` decide only their speed. `software` is the server's name and version.
    """
    template, folder = args.chat_template, weights.folder
    details: dict[str, Any] = {
        "engine": {
            name: one for name, one in sorted(args.engine.items()) if name not in speed_args
        },
        "identity": folder_identity(folder) if folder else None,
        "revision": weights.commit,
        "chat_template": digest_bytes(template.read_bytes()) if template else None,
        "chat_template_kwargs": dict(args.chat_template_kwargs) or None,
        SOFTWARE: software,
    }
    details = {name: one for name, one in details.items() if one is not None}
    if args.requests:
        asked = OpenAIArgs(model=args.model, **args.requests)
        form = form_of(asked)
        details |= request_details(asked, form and form.identity)
    name = folder.resolve().name if folder else args.model
    scope = "run" if folder is None and weights.commit is None else "everywhere"
    return Identity(kind=kind, name=name, details=details, scope=scope)


def checked_folder(text: str, *, argument: str, all_formats: bool = False) -> Path | None:
    """The folder of weights that a text names; None if it names a repository of the hub.

    With `all_formats`, also a GGUF file, a folder in Mistral's format, and None for an address of
    an object store or a repository with a quantization, as in `org/name-GGUF:Q4_K_M`.
    """
    folder = Path(text).expanduser()
    if all_formats and folder.suffix == ".gguf" and folder.is_file():
        return folder
    if not folder.is_dir():
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", text) and not text.startswith("."):
            return None
        if all_formats and (ELSEWHERE.fullmatch(text) or QUANTIZED.fullmatch(text)):
            return None
        raise ModelError(
            "the folder of weights does not exist",
            where="--model_args",
            found=f"{argument}={text}",
            expected="a folder with config.json and weights, or a repository as in Qwen/Qwen3-8B",
        )
    settings = ("config.json", MISTRAL) if all_formats else ("config.json",)
    if argument == "pretrained" and not any((folder / name).is_file() for name in settings):
        raise ModelError(
            "the folder contains no model",
            where=str(folder),
            found=", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing",
            expected="config.json, the tokenizer's files and weights",
        )
    return folder


def given_weights(kind: str, args: WeightsArgs, *, all_formats: bool = False) -> Weights:
    """The weights that the arguments name, which are whole if they are in a folder.

    A folder has no revision: servers ignore it silently. `all_formats` as in `checked_folder`.
    """
    folder = checked_folder(args.model, argument="pretrained", all_formats=all_formats)
    if folder is not None:
        if args.revision is not None:
            expected = "no revision=: a folder holds a single revision"
            raise bad(kind, f"revision={args.revision}", expected)
        check_weights(folder)
    return Weights(args.model, folder, args.revision)


def check_weights(folder: Path) -> None:
    """Raise ModelError for a settings file or weights that are incomplete, which it names."""
    if folder.is_file():
        return
    for name in ("config.json", INDEX):
        path = folder / name
        if path.is_file():
            try:
                found = json.loads(path.read_text("utf-8"))
            except ValueError as error:
                raise _damaged(path, f"no JSON ({error})", "a file as it was saved") from error
            for part in sorted({*found.get("weight_map", {}).values()}) if name == INDEX else ():
                if not (folder / part).is_file():
                    raise _damaged(path, f"no file {part}", "all files that it names")
    for path in sorted(folder.glob("*.safetensors")):
        size, expected = path.stat().st_size, None
        with path.open("rb") as file, suppress(ValueError, AttributeError, LookupError, TypeError):
            length = int.from_bytes(file.read(8), "little")
            if length <= LONGEST_HEADER:
                tensors = json.loads(file.read(length))
                ends = [one["data_offsets"][1] for name, one in tensors.items() if name != META]
                expected = 8 + length + max(ends, default=0)
        if size != expected:
            known = "a header in JSON" if expected is None else f"{expected} bytes"
            raise _damaged(path, f"{size} bytes", f"{known}, as the file was saved")


def _damaged(path: Path, found: str, expected: str) -> ModelError:
    return ModelError(
        "the checkpoint is incomplete or damaged",
        where=str(path),
        found=found,
        expected=expected,
        hint="copy or download it again; a training run may still be writing it",
    )


def has_chat_template(folder: Path) -> bool:
    """True if a folder of weights has a chat template."""
    kept = any((folder / name).exists() for name in TEMPLATES)
    return kept or bool(Weights(str(folder)).settings(TOKENIZER).get("chat_template"))


def weights_think(args: WeightsArgs, weights: Weights, tokenizer: str | None = None) -> bool | None:
    """Whether weights think: as given, else by the parser of reasoning or the chat template.

    None if the template cannot be read. Small files of the hub are fetched.
    """
    if args.thinking is not None:
        return args.thinking
    if "reasoning_parser" in args.engine:
        return not any(args.chat_template_kwargs.get(name) is False for name in SWITCHES)
    if args.chat_template is not None:
        return lets_think(args.chat_template.read_text("utf-8"), args.chat_template_kwargs)
    place = Weights(tokenizer) if tokenizer else weights
    source: Any = place.text(TEMPLATES[0])
    for name in (TEMPLATES[1], TOKENIZER):
        source = source or place.settings(name).get("chat_template")
        if isinstance(source, list):
            named = {one.get("name"): one.get("template") for one in source}
            source = named.get("default") or next(iter(named.values()), None)
    return lets_think(source, args.chat_template_kwargs) if isinstance(source, str) else None


def commit_of(repository: str, revision: str | None) -> str | None:
    """The current commit of a repository's revision, from the hub or its cache; None if unknown."""
    if revision is not None and re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    if ELSEWHERE.fullmatch(repository):
        return None
    repository = repository.partition(":")[0]
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    if not constants.HF_HUB_OFFLINE:
        try:
            about = HfApi().model_info(repository, revision=revision, timeout=HUB_SECONDS)
        except (RepositoryNotFoundError, RevisionNotFoundError) as error:
            raise ModelError(
                "the hub has no such repository or revision, or you have no access to it",
                where="--model_args",
                found=f"{repository}@{revision}" if revision else repository,
                expected="the name of an existing repository of weights",
                hint="for private repositories, set HF_TOKEN in the environment",
            ) from error
        except Exception:  # no network: the server will use the cache
            about = None
        if about is not None and about.sha:
            return str(about.sha)
    name = "models--" + repository.replace("/", "--")
    known = Path(constants.HF_HUB_CACHE) / name / "refs" / (revision or "main")
    return known.read_text().strip() if known.is_file() else None
