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

KINDS = {
    "hashing": ("hashes of words and their parts, without weights: for demos and tests", HASHING),
}
"""Kind of embedder → its description and its arguments."""

MODULES = {"hashing": "hashing"}
"""Kind of embedder → the module that makes it."""


@hookimpl
def register_embedders(register: RegisterEmbedder) -> None:
    """Adds `hashing`."""
    for kind, (description, arguments) in KINDS.items():
        register(kind, partial(make, kind), description=description, arguments=arguments)


def make(kind: str, settings: EmbedderSettings) -> Embedder:
    """An embedder of one of these kinds: `make("hashing", EmbedderSettings(args={}))`."""
    embedder: Embedder = import_module(f"harness_embedders.{MODULES[kind]}").make(settings)
    return embedder
