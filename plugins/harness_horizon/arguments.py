"""Readers for arguments that the plugin's kinds of model share."""

from __future__ import annotations

from collections.abc import Sequence

from harness.base.errors import UsageError, one_of
from harness.contracts.model import ModelSettings


def read_arguments(
    kind: str, settings: ModelSettings, known: Sequence[str], in_flight: int
) -> tuple[str, int]:
    """The device and the requests in flight; UsageError for unknown arguments and wrong values."""
    for name in settings.args:
        problem = f"the model '{kind}' has no argument {name!r}"
        one_of(name, known, problem, where="--model_args", found=name)
    device = settings.args.get("device", "auto")
    if device not in ("auto", "cpu", "cuda"):
        raise UsageError("there is no such device", found=device, expected="auto, cpu or cuda")
    given = settings.args.get("concurrency", "")
    if given and not (given.isascii() and given.isdigit() and int(given) > 0):
        raise UsageError("concurrency is no whole number above 0", found=given)
    return device, int(given) if given else settings.concurrency or in_flight
