"""The memos of a run's stages: small tables in which the first write of a key wins."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from harness.calls.store import Store


class Entry(msgspec.Struct, frozen=True):
    """A value of a table, which never changes, and the item of this run that wrote it, if any."""

    value: str
    writer: str | None = None


class Tables(Protocol):
    """The tables of a run by name."""

    def entries(self, name: str, keys: Iterable[str]) -> dict[str, Entry]:
        """The entries of these keys, of those that have one."""
        ...

    def keep(self, name: str, asker: str, values: Mapping[str, str]) -> dict[str, Entry]:
        """The entries that hold from now on for these keys."""
        ...


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


@dataclass(frozen=True)
class LocalMemo:
    """A table of this process, for rehearsals, which leave no file."""

    values: dict[str, str] = field(default_factory=dict)

    def known(self, keys: Iterable[str]) -> dict[str, str]:
        """The values of these keys, of those that have one."""
        return {key: self.values[key] for key in keys if key in self.values}

    def keep(self, values: Mapping[str, str]) -> dict[str, str]:
        """The values that hold from now on for these keys."""
        return {key: self.values.setdefault(key, value) for key, value in values.items()}


class Memory:
    """The tables of a run: in its store, or else in its own file, or else in this process."""

    def __init__(self, store: Store | None, own: Store | None = None) -> None:
        self._store = store or own
        self._own = own
        self._local: defaultdict[str, LocalMemo] = defaultdict(LocalMemo)

    def __call__(self, name: str, asker: str) -> ItemMemo | LocalMemo:
        """The table of that name, as an item sees it."""
        return self._local[name] if self._store is None else ItemMemo(self, name, asker)

    def entries(self, name: str, keys: Iterable[str]) -> dict[str, Entry]:
        """The entries of these keys, of those that have one."""
        if self._store is None:
            return _unsigned(self._local[name].known(keys))
        return self._signed(name, self._store.memo_known(name, keys))

    def keep(self, name: str, asker: str, values: Mapping[str, str]) -> dict[str, Entry]:
        """The entries that hold from now on for these keys."""
        if self._store is None:
            return _unsigned(self._local[name].keep(values))
        offered = {key: value.encode() for key, value in values.items()}
        if self._own is not None:
            held = self._store.memo_known(name, offered)
            new = dict.fromkeys(offered.keys() - held.keys(), asker.encode())
            self._own.memo_keep(_writers(name), new)
        return self._signed(name, self._store.memo_keep(name, offered))

    def _signed(self, name: str, found: Mapping[str, bytes]) -> dict[str, Entry]:
        """The values with their writers."""
        written = {} if self._own is None else self._own.memo_known(_writers(name), found)
        writers = {key: writer.decode() for key, writer in written.items()}
        return {key: Entry(value.decode(), writers.get(key)) for key, value in found.items()}


class DistantMemory:
    """The tables of a run that another process holds, with the entries that are known here.

    `entries` and `keep` are those of the other's `Memory`; both may take their time.
    """

    def __init__(
        self,
        *,
        entries: Callable[[str, list[str]], Mapping[str, Entry]],
        keep: Callable[[str, str, dict[str, str]], Mapping[str, Entry]],
    ) -> None:
        self._entries = entries
        self._keep = keep
        self._known: defaultdict[str, dict[str, Entry]] = defaultdict(dict)

    def __call__(self, name: str, asker: str) -> ItemMemo:
        """The table of that name, as an item sees it."""
        return ItemMemo(self, name, asker)

    def entries(self, name: str, keys: Iterable[str]) -> dict[str, Entry]:
        """The entries of these keys, of those that have one."""
        wanted, known = list(keys), self._known[name]
        if unknown := [key for key in wanted if key not in known]:
            known.update(self._entries(name, unknown))
        return {key: known[key] for key in wanted if key in known}

    def keep(self, name: str, asker: str, values: Mapping[str, str]) -> dict[str, Entry]:
        """The entries that hold from now on for these keys."""
        known = self._known[name]
        if new := {key: value for key, value in values.items() if key not in known}:
            known.update(self._keep(name, asker, new))
        return {key: known[key] for key in values}


def _unsigned(values: Mapping[str, str]) -> dict[str, Entry]:
    return {key: Entry(value) for key, value in values.items()}


def _writers(name: str) -> str:
    """The table of the run's own file that holds who wrote the values of a table."""
    return f"writers of {name}"
