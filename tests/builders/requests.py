"""Requests to a model."""

from typing import Any

from harness.contracts.model import Message, Request, Sampling


def make_request(text: str = "hello", *, seed: int = 0, **sampling: Any) -> Request:
    """A request of one message of the user, sampled as given."""
    return Request(messages=(Message("user", text),), sampling=Sampling(**sampling), seed=seed)
