"""The memos of a run's stages: small tables in which the first write of a key wins."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from harness.calls.store import Store


class Entry(msgspec.Struct, frozen=True):
    """A value of a table, which never changes, and the item of this run that wrote it, if any."""

    value: str
    writer: str | None = None


class Tables(ABC):
    """The tables of a run by name."""

    def __call__(self, name: str, asker: str) -> ItemMemo:
        """The table of that name, as an item sees it."""
        return ItemMemo(self, name, asker)

    @abstractmethod
    def entries(self, name: str, keys: Iterable[str]) -> dict[str, Entry]:
        """The entries of these keys, of those that have one."""

    @abstractmethod
    def keep(self, name: str, asker: str, values: Mapping[str, str]) -> dict[str, Entry]:
        """The entries that hold from now on for these keys."""


@dataclass(frozen=True)
class ItemMemo:
    """A table, as one item sees it.

    The run's own file keeps which values the item wrote. An item that a kill left without a record
    does not know them: it asks again, is answered as before, and makes the record it would have.
    """

    tables: Tables
    name: str
    asker: str

    def known(self, keys: Iterable[str]) -> dict[str, str]:
        """The values of these keys, of those that have one."""
        found = self.tables.entries(self.name, keys)
        return {key: one.value for key, one in found.items() if one.writer != self.asker}

    def keep(self, values: Mapping[str, str]) -> dict[str, str]:
        """The values that hold from now on for these keys."""
        held = self.tables.keep(self.name, self.asker, values)
        return {key: one.value for key, one in held.items()}


class Memory(Tables):
    """The tables of a run, in its store or else in its `own` file, which has who wrote a value."""

    def __init__(self, store: Store, own: Store | None = None) -> None:
        self._store = store
        self._own = own

    def entries(self, name: str, keys: Iterable[str]) -> dict[str, Entry]:
        return self._signed(name, self._store.memo_known(name, keys))

    def keep(self, name: str, asker: str, values: Mapping[str, str]) -> dict[str, Entry]:
        offered = {key: value.encode() for key, value in values.items()}
        if self._own is not None:
            held = self._store.memo_known(name, offered)
            new = dict.fromkeys(offered.keys() - held.keys(), asker.encode())
            self._own.memo_keep(_writers(name), new)
        return self._signed(name, self._store.memo_keep(name, offered))

    def copy(self, prefix: str) -> dict[str, dict[str, Entry]]:
        """All entries of the tables whose names begin so."""
        written = {} if self._own is None else self._own.memo_all(_writers(prefix))
        return {
            name: _entries(found, written.get(_writers(name), {}))
            for name, found in self._store.memo_all(prefix).items()
        }

    def _signed(self, name: str, found: Mapping[str, bytes]) -> dict[str, Entry]:
        written = {} if self._own is None else self._own.memo_known(_writers(name), found)
        return _entries(found, written)


class CopiedMemory(Tables):
    """The tables of a run as a worker in another process sees them: a copy, and its own additions.

    `tell(name, asker, values)` hears of what is new; others see it once they have a later copy. A
    rehearsal tells nobody.
    """

    def __init__(
        self, tell: Callable[[str, str, dict[str, str]], None] = lambda name, asker, values: None
    ) -> None:
        self._tables: defaultdict[str, dict[str, Entry]] = defaultdict(dict)
        self._tell = tell

    def learn(self, name: str, entries: Mapping[str, Entry]) -> None:
        """Take entries over, of keys that have none."""
        self._tables[name] = {**entries, **self._tables[name]}

    def entries(self, name: str, keys: Iterable[str]) -> dict[str, Entry]:
        table = self._tables[name]
        return {key: table[key] for key in keys if key in table}

    def keep(self, name: str, asker: str, values: Mapping[str, str]) -> dict[str, Entry]:
        table = self._tables[name]
        if new := {key: value for key, value in values.items() if key not in table}:
            self._tell(name, asker, new)
            table.update({key: Entry(value, asker) for key, value in new.items()})
        return {key: table[key] for key in values}


def _entries(found: Mapping[str, bytes], written: Mapping[str, bytes]) -> dict[str, Entry]:
    writers = {key: writer.decode() for key, writer in written.items()}
    return {key: Entry(value.decode(), writers.get(key)) for key, value in found.items()}


def _writers(name: str) -> str:
    """The table of the run's own file that holds who wrote the values of a table."""
    return f"writers of {name}"
