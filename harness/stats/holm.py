"""Several tests at once."""

from __future__ import annotations

from collections.abc import Sequence


def holm(values: Sequence[float]) -> tuple[float, ...]:
    """The p values adjusted after Holm (1979), in their order.

    Rejecting what is below α then errs anywhere among them with a chance of at most α, however
    they depend on each other.
    """
    by_size = sorted(range(len(values)), key=lambda place: values[place])
    adjusted = [0.0] * len(values)
    least = 0.0
    for rank, place in enumerate(by_size):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = least
    return tuple(adjusted)
