"""The hooks of the plugin; its factories import the other modules at first use."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

from harness import hookimpl

if TYPE_CHECKING:
    from harness.contracts.embedder import Embedder, EmbedderSettings
    from harness.registry.hookspecs import RegisterEmbedder

HASHING = {"dimensions": "the numbers of a vector (384)"}

SENTENCES = {
    "model": "a folder of weights or a repository of the hub",
    "revision": "a branch, tag or commit of the hub",
    "pooling": "cls or mean; else as the weights' own settings say, cls if they have none",
    "max_length": "the tokens of a text that are read; else as the weights' own settings say, at "
    "most 512 if they have none",
    "dtype": "float32, float16 or bfloat16 (float32)",
    "device": "cpu, cuda, cuda:1 …; else a GPU if there is one",
    "batch": "the texts that are read at once (64)",
}

BATCH = {"batch": "the texts of a request (128)"}
OPENAI = {
    "model": "the name that the server knows the embedder by",
    "base_url": "the server's address; else OPENAI_BASE_URL, else OpenAI's own",
    "api_key_env": "the environment variable that holds the key (OPENAI_API_KEY)",
    "any other": "as `harness list models openai` has it: api_key_file, revision, identity, "
    "concurrency, extra_body, azure_endpoint, azure_deployment, api_version, max_answer_bytes",
    **BATCH,
}
VLLM = {
    "pretrained": "a folder of weights or a repository of the hub",
    "any other": "as `harness list models vllm` has it; pooler_config={…} says how it pools tokens",
    **BATCH,
}

KINDS = {
    "hashing": ("hashes of words and their parts, without weights: for demos and tests", HASHING),
    "sentence-transformers": ("weights in this process, on a GPU if there is one", SENTENCES),
    "openai": ("any server with /embeddings, as OpenAI's", OPENAI),
    "vllm": ("weights served by a vLLM that the harness starts", VLLM),
}
"""Kind of embedder → its description and its arguments."""

MODULES = {"hashing": "hashing", "sentence-transformers": "sentences"}
"""Kind of embedder → the module that makes it; `served` makes the others."""


@hookimpl
def register_embedders(register: RegisterEmbedder) -> None:
    for kind, (description, arguments) in KINDS.items():
        register(kind, partial(make, kind), description=description, arguments=arguments)


def make(kind: str, settings: EmbedderSettings) -> Embedder:
    """An embedder of one of these kinds: `make("hashing", EmbedderSettings(args={}))`."""
    module = import_module(f"harness_embedders.{MODULES.get(kind, 'served')}")
    embedder: Embedder = module.make(kind, settings)
    return embedder
