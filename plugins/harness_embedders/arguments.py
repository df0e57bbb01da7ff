"""Readers for arguments that the kinds of embedder share."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from harness.base.errors import UsageError
from harness.base.errors import one_of as one_of_names


def check_known(kind: str, given: Mapping[str, str], known: Collection[str]) -> None:
    """Raise UsageError for arguments that the kind does not have, and for empty ones."""
    for name, value in given.items():
        one_of_names(
            name, known, f"the embedder {kind} has no argument {name!r}", listed="one of {}",
            hint=f"`harness list embedders {kind}` describes each",
        )  # fmt: skip
        if not value:
            raise bad(kind, f"{name}=", f"{name}=VALUE")


def count_of(kind: str, given: Mapping[str, str], name: str, default: int) -> int:
    """The whole number, at least 1, that an argument spells; UsageError for any other text."""
    text = given.get(name, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise bad(kind, f"{name}={text}", "a whole number, at least 1")
    return int(text)


def one_of(kind: str, given: Mapping[str, str], name: str, choices: Collection[str]) -> str | None:
    """The argument's value, which is one of the choices, None without one; UsageError otherwise."""
    text = given.get(name)
    if text is not None and text not in choices:
        raise bad(kind, f"{name}={text}", " or ".join(choices))
    return text


def bad(kind: str, argument: str, expected: str) -> UsageError:
    """The error for an argument, as `name=value`, that cannot be used."""
    return UsageError(
        f"an argument of the embedder {kind} cannot be used", found=argument, expected=expected
    )
