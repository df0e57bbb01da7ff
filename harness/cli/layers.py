"""Where settings may be given, and which of them holds: files, environment, command line."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from harness.cli.named_models import NamedModel
from harness.errors import UsageError

USER, FOLDER = "user file", "folder file"
ENVIRONMENT, COMMAND = "environment", "command line"

_SHARED = {"judge": "role.judge", "no_store": "store"}
"""Options that say the same thing as another, and the place of that."""

_OPTION = re.compile(r"--(\w+)")
_OPTION_OR_TABLE = re.compile(r"--(\w+)|^(\w+)")
"""The option that an error's place is of: `--limit`, or a table by its name at the beginning."""


@dataclass(frozen=True, kw_only=True)
class Given:
    """A value of an option, as the parser has it, and where it was given.

    Of an option that is given entry by entry, this is one entry, and `entry` is its name.
    """

    option: str
    value: Any
    source: str
    where: str
    entry: str | None = None

    @property
    def slot(self) -> str:
        """What it settles: of all that are given for one slot, those given nearest hold."""
        if self.entry is not None:
            return f"{self.option}.{self.entry}"
        return _SHARED.get(self.option, self.option)


@dataclass(frozen=True, kw_only=True)
class Held:
    """All that was given: by slot what each layer says, the last of which holds.

    `files` are those that were looked for, and whether they are there; `unread` warns of
    variables that must be misspelt, and `named` is where the models stand that are called by name.
    """

    slots: Mapping[str, Sequence[tuple[Given, ...]]] = field(default_factory=dict)
    models: Mapping[str, NamedModel] = field(default_factory=dict)
    files: Sequence[tuple[str, bool]] = ()
    unread: Sequence[str] = ()
    named: Sequence[str] = ()

    def holding(self, option: str | None = None) -> Iterator[Given]:
        """What holds, of one option or of all."""
        for stack in self.slots.values():
            for given in stack[-1]:
                if option is None or given.option == option:
                    yield given

    def overridden(self, slot: str) -> Iterator[Given]:
        """What was said of a slot and does not hold, the nearest first."""
        for layer in reversed(self.slots[slot][:-1]):
            yield from layer

    def told(self) -> str | None:
        """In a line, what was not said on the command line and where it was; None for nothing."""
        places: dict[str, list[str]] = {}
        for given in self.holding():
            if given.source != COMMAND:
                place = given.where.partition(":")[0]
                places.setdefault(place, []).append(given.option)
        return "; ".join(
            f"{', '.join(dict.fromkeys(names))} of {place}" for place, names in places.items()
        ) or None  # fmt: skip

    def placed(self, error: UsageError) -> UsageError:
        """The error, with the file or variable that gave the option which it speaks of."""
        placed = [one[1] or one[2] for one in _OPTION_OR_TABLE.finditer(error.where or "")]
        for name in [*placed, *_OPTION.findall(error.problem)]:
            elsewhere = {given.where for given in self.holding(name) if given.source != COMMAND}
            if name == "model_args" and not any(self.holding(name)):
                elsewhere = set(self.named)
            if elsewhere:
                places = ", ".join(sorted(elsewhere))
                error.where = f"{places} ({error.where})" if error.where else places
                break
        return error


def settled(layers: Sequence[Sequence[Given]]) -> dict[str, list[tuple[Given, ...]]]:
    """By slot what each layer says of it, the farthest layer first."""
    slots: dict[str, list[tuple[Given, ...]]] = {}
    for layer in layers:
        said: dict[str, list[Given]] = {}
        for given in layer:
            said.setdefault(given.slot, []).append(given)
        for slot, stack in slots.items():
            if slot not in said and _swept(slot, said):
                stack.append(())
        for slot, all_given in said.items():
            slots.setdefault(slot, []).append(tuple(all_given))
    return slots


def _swept(slot: str, said: Mapping[str, Any]) -> bool:
    """Whether a nearer layer takes a slot back that it does not speak of.

    Who names a model names its arguments too; a place for all data is meant for all tasks.
    """
    if slot == "model_args":
        return "model" in said
    return slot.startswith("data.") and "data.*" in said


def fill(args: argparse.Namespace, held: Held, *, lists: Mapping[str, str]) -> None:
    """Put what holds into the parsed arguments; `lists` are the options given several times.

    Both mappings are from an option to its place in the arguments.
    """
    values: dict[str, Any] = {}
    for given in held.holding():
        if given.option in lists:
            values.setdefault(lists[given.option], []).extend(given.value)
        else:
            values[given.option] = given.value
    for dest in lists.values():
        values.setdefault(dest, [])
    for dest, value in values.items():
        setattr(args, dest, value)
