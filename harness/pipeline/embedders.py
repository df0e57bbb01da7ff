"""Embedders as SPECs name them: `sentence-transformers:NAME,pooling=cls`."""

from __future__ import annotations

from harness.base.errors import PluginError
from harness.contracts.embedder import Ask, Embedder, EmbedderSettings
from harness.pipeline.roles import made
from harness.pipeline.specs import hosts_in, parse_spec
from harness.registry import load_plugins


def named_embedder(
    spec: str, *, ask: Ask | None = None, given_hosts: frozenset[str] | None = None
) -> Embedder:
    """The embedder that a SPEC names; it is not open yet.

    `given_hosts` are the hosts of the user's own command; without it, the SPEC counts as typed.
    """
    parsed = parse_spec(spec)
    registration = load_plugins().embedder(parsed.kind)
    hosts = hosts_in(parsed.args.values()) if given_hosts is None else given_hosts
    embedder = made(registration, EmbedderSettings(args=parsed.args, ask=ask, given_hosts=hosts))
    if not isinstance(embedder, Embedder):
        raise PluginError(
            f"the factory of the kind of embedder {parsed.kind!r} returned no embedder",
            found=type(embedder).__name__,
            expected="an instance of a subclass of harness.Embedder",
        )
    return embedder
