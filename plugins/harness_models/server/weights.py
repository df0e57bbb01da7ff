"""Which weights a model's name stands for: what tells one checkpoint from another."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.base.errors import ModelError
from harness.base.hashing import digest, digest_bytes

WEIGHTS = (".safetensors", ".bin", ".pt", ".pth", ".gguf")
SMALL = (".json", ".jinja", ".txt", ".model", ".py")
"""What lies beside weights and decides answers: settings, tokenizer, template, code."""

TEMPLATES = (
    "chat_template.jinja",
    "chat_template.json",
    "additional_chat_templates",
    "tekken.json",
)
"""The last is the tokenizer of Mistral's models, which holds their template."""

TOKENIZER = "tokenizer_config.json"
LONGEST_HEADER = 100_000_000
HUB_SECONDS = 10.0


def folder_identity(folder: Path) -> str:
    """The same text while nothing in a folder of weights has changed.

    Weights are too large to be read: their headers, sizes and times stand for them. What is small
    enters whole.
    """
    parts: dict[str, Any] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix in WEIGHTS and path.is_file():
            told = path.stat()
            parts[path.name] = [told.st_size, told.st_mtime_ns, _header(path)]
        elif path.suffix in SMALL and path.is_file():
            parts[path.name] = digest_bytes(path.read_bytes())
    return digest(parts)[:16]


def identity_details(
    *,
    engine: Mapping[str, str],
    folder: Path | None,
    commit: str | None,
    chat_template: Path | None,
    chat_template_kwargs: Mapping[str, Any],
) -> dict[str, Any]:
    """What of an identity every server of weights has: `engine` are those arguments that decide
    what it says, and not how fast."""
    details: dict[str, Any] = {"engine": dict(sorted(engine.items()))}
    if folder is not None:
        details["identity"] = folder_identity(folder)
    elif commit is not None:
        details["revision"] = commit
    if chat_template is not None:
        details["chat_template"] = digest_bytes(chat_template.read_bytes())
    if chat_template_kwargs:
        details["chat_template_kwargs"] = dict(chat_template_kwargs)
    return details


def checked_folder(text: str, *, argument: str) -> Path | None:
    """The folder of weights that a text names, None where it names a repository of the hub."""
    folder = Path(text).expanduser()
    if not folder.is_dir():
        if re.fullmatch(r"[\w.-]+(/[\w.-]+)?", text) and not text.startswith("."):
            return None
        raise ModelError(
            "no such folder of weights",
            where="--model_args",
            found=f"{argument}={text}",
            expected="a folder with config.json and weights, or a name of the hub as Qwen/Qwen3-8B",
        )
    if argument == "pretrained" and not (folder / "config.json").is_file():
        raise ModelError(
            "the folder holds no model",
            where=str(folder),
            found=", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing",
            expected="config.json, the tokenizer's files and weights",
        )
    return folder


def has_chat_template(folder: Path) -> bool:
    """Whether a folder of weights tells how its model is asked in turns."""
    return any((folder / name).exists() for name in TEMPLATES) or _tells_template(
        folder / TOKENIZER
    )


def cached_without_template(repository: str, commit: str) -> Path | None:
    """The tokenizer's settings of a commit whose files in the cache hold no chat template.

    None where there is one, and where what is not in the cache may be it.
    """
    from huggingface_hub import constants, try_to_load_from_cache

    def cached(name: str) -> Any:
        return try_to_load_from_cache(
            repository, name, revision=commit, cache_dir=constants.HF_HUB_CACHE
        )

    settings = cached(TOKENIZER)
    if not isinstance(settings, str) or has_chat_template(Path(settings).parent):
        return None
    # Online, a file of which the cache knows nothing may still be fetched.
    known = constants.HF_HUB_OFFLINE or cached(TEMPLATES[0]) is not None
    return Path(settings) if known else None


def check_template(model: str, *, folder: Path | None, commit: str | None) -> None:
    """ModelError where the weights, as far as they lie here, have no chat template."""
    without = None
    if folder is not None:
        without = None if has_chat_template(folder) else folder
    elif commit is not None:
        without = cached_without_template(model, commit)
    if without is not None:
        raise ModelError(
            "the checkpoint has no chat template, so it cannot be asked",
            where=str(without),
            expected="chat_template.jinja, or chat_template in tokenizer_config.json",
            hint="chat_template=FILE.jinja, the one that it was trained with",
        )


def _tells_template(settings: Path) -> bool:
    try:
        told = json.loads(settings.read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(told, dict) and bool(told.get("chat_template"))


def commit_of(repository: str, revision: str | None) -> str | None:
    """The commit that a name of the hub stands for now; None where nobody can be asked."""
    if revision is not None and re.fullmatch(r"[0-9a-f]{40}", revision):
        return revision
    return _asked(repository, revision) or _cached(repository, revision)


def longest_context(model: str, *, revision: str | None = None) -> int | None:
    """How many tokens a model was made for, as its config says; None where it does not."""
    for part in _parts(_settings(model, revision, "config.json")):
        if isinstance(part.get("max_position_embeddings"), int):
            length: int = part["max_position_embeddings"]
            return length
    return None


def end_tokens(model: str, *, revision: str | None = None) -> list[int]:
    """The numbers of the tokens that end an answer, none where the model does not tell."""
    for name in ("generation_config.json", "config.json"):
        for part in _parts(_settings(model, revision, name)):
            found = part.get("eos_token_id")
            if found is not None:
                return found if isinstance(found, list) else [found]
    return []


def _parts(settings: dict[str, Any]) -> list[dict[str, Any]]:
    """The settings and, for a model that also sees or hears, those of the part that writes."""
    return [part for part in (settings, settings.get("text_config")) if isinstance(part, dict)]


def _settings(model: str, revision: str | None, name: str) -> dict[str, Any]:
    """What a file of settings says; nothing where it is not there or cannot be had."""
    path: str | Path = Path(model).expanduser() / name
    try:
        if not Path(path).is_file():
            from huggingface_hub import hf_hub_download

            path = hf_hub_download(model, name, revision=revision)
        found = json.loads(Path(path).read_text("utf-8"))
    except Exception:  # the hub's client raises what it likes, and the server will tell better
        return {}
    return found if isinstance(found, dict) else {}


def _asked(repository: str, revision: str | None) -> str | None:
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    if constants.HF_HUB_OFFLINE:
        return None
    try:
        return HfApi().model_info(repository, revision=revision, timeout=HUB_SECONDS).sha
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        raise ModelError(
            "the hub has no such model, or does not show it to you",
            where="--model_args",
            found=f"{repository}@{revision}" if revision else repository,
            expected="a repository of weights",
            hint="HF_TOKEN in the environment opens those that are not public",
        ) from error
    except Exception:  # no network: what lies in the cache is what will be served
        return None


def _cached(repository: str, revision: str | None) -> str | None:
    from huggingface_hub import constants

    name = "models--" + repository.replace("/", "--")
    known = Path(constants.HF_HUB_CACHE) / name / "refs" / (revision or "main")
    return known.read_text().strip() if known.is_file() else None


def _header(path: Path) -> str:
    """A digest of what a weight file says of itself; empty for kinds that say nothing."""
    if path.suffix != ".safetensors":
        return ""
    with path.open("rb") as file:
        start = file.read(8)
        length = int.from_bytes(start, "little")
        return digest_bytes(start + file.read(min(length, LONGEST_HEADER)))
