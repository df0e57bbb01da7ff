"""The key of a call: the hash of everything that decides its answer."""

from __future__ import annotations

import functools

from harness.base.hashing import canonical, canonical_plain, digest_bytes, stable_int
from harness.contracts.identity import Identity
from harness.contracts.model import Request

LARGEST_SEED = 0x7FFF_FFFF
"""The largest seed of servers with 32-bit seeds."""


def call_key(
    identity: Identity, request: Request, *, repeat: int, run_id: str, fresh: str | None = None
) -> str:
    """A 32-character hexadecimal key, equal for two calls that may share one answer.

    `fresh` is the salt of a run that needs answers of its own.
    """
    sampling = request.sampling
    # What is not set has no part in the key: keys are those from before these fields existed.
    reasoning = sampling.reasoning_tokens
    # The parts in order of their names; only the last contains fractions.
    salt = canonical_plain(fresh)
    messages = canonical_plain([[one.role, one.content] for one in request.messages])
    rest = canonical(
        {
            "model": identity.key(run_id),
            "sampling": {
                "temperature": sampling.temperature,
                "max_tokens": sampling.max_tokens,
                "top_p": sampling.top_p,
                "stop": sampling.stop,
                **({"reasoning_tokens": reasoning} if reasoning else {}),
                **sampling.seldom_set,
            },
            "seed": request.seed,
            "repeat": repeat,
            "schema": request.schema,
        }
    )
    return digest_bytes(b'{"fresh":%b,"messages":%b,%b' % (salt, messages, rest[1:]))


@functools.lru_cache
def call_seed(seed: int, repeat: int) -> int:
    """The seed of one call: different for each repeat, the same in every run."""
    return stable_int("call", seed, repeat) & LARGEST_SEED
