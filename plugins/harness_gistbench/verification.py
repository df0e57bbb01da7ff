"""When evidence verifies an interest: one set of rules for the prompt, the scores and the analyses.

A condition on a signal that the dataset does not have is left out, the mixture with either of its
two. Where no positive condition is left, nothing can be verified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

import msgspec

from harness_gistbench.records import Counts, Evidence, Signal, Verification

Shortcoming: TypeAlias = Literal["short_of_implicit", "short_of_explicit", "too_negative"]
SHORTCOMINGS: tuple[Shortcoming, ...] = ("short_of_implicit", "short_of_explicit", "too_negative")


class Conditions(msgspec.Struct, frozen=True, kw_only=True):
    """The rules as plain numbers, for one dataset.

    `positive` are alternatives, each the least number of explicit and of implicit positive objects;
    `negative` is the most objects of each negative signal.
    """

    positive: tuple[tuple[int, int], ...]
    negative: tuple[tuple[Signal, int], ...]


def conditions(verification: Verification, signals: Sequence[Signal]) -> Conditions:
    """The rules that hold for a dataset with these signals."""
    explicit, implicit = "explicit_positive" in signals, "implicit_positive" in signals
    alternatives = (
        (explicit, (verification.min_explicit_positive, 0)),
        (implicit, (0, verification.min_implicit_positive)),
        (
            explicit and implicit,
            (verification.mixed_explicit_positive, verification.mixed_implicit_positive),
        ),
    )
    limits: tuple[tuple[Signal, int], ...] = (
        ("implicit_negative", verification.max_implicit_negative),
        ("explicit_negative", verification.max_explicit_negative),
    )
    return Conditions(
        positive=tuple(pair for applies, pair in alternatives if applies),
        negative=tuple((signal, most) for signal, most in limits if signal in signals),
    )


def count(kept: Iterable[Evidence]) -> Counts:
    """The distinct objects of each signal; an object with several counts once under each."""
    pairs = {(one.object, signal) for one in kept for signal in one.signals}
    numbers: Counter[str] = Counter(signal for _, signal in pairs)
    return Counts(**numbers)


def meets(counts: Counts, rules: Conditions) -> bool:
    """Whether one positive condition holds and no negative limit is exceeded."""
    enough = any(
        counts.explicit_positive >= explicit and counts.implicit_positive >= implicit
        for explicit, implicit in rules.positive
    )
    return enough and not _too_negative(counts, rules)


def shortcomings(
    counts: Counts, verification: Verification, signals: Sequence[Signal]
) -> tuple[Shortcoming, ...]:
    """What an unverified interest lacks or has too much of, in the order of SHORTCOMINGS.

    It is short of a positive signal when it has too few objects of that signal alone, and only
    where the dataset has the signal. More than one may hold.
    """
    found: dict[Shortcoming, bool] = {
        "short_of_implicit": "implicit_positive" in signals
        and counts.implicit_positive < verification.min_implicit_positive,
        "short_of_explicit": "explicit_positive" in signals
        and counts.explicit_positive < verification.min_explicit_positive,
        "too_negative": _too_negative(counts, conditions(verification, signals)),
    }
    return tuple(name for name in SHORTCOMINGS if found[name])


def _too_negative(counts: Counts, rules: Conditions) -> bool:
    return any(getattr(counts, signal) > most for signal, most in rules.negative)
