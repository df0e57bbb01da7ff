"""The memos of a run's stages: small tables in which the first write of a key wins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.calls.store import Store


@dataclass(frozen=True)
class StoredMemo:
    """A table in a store, as one item sees it.

    The run's own file keeps which values the item wrote. An item that a kill left without a record
    does not know them: it asks again, is answered as before, and makes the record it would have.
    """

    store: Store
    own: Store | None
    name: str
    asker: str

    def known(self, keys: Iterable[str]) -> dict[str, str]:
        """The values of these keys, of those that have one."""
        found = _decoded(self.store.memo_known(self.name, keys))
        if self.own is None:
            return found
        written = _decoded(self.own.memo_known(self._writers, found))
        return {key: value for key, value in found.items() if written.get(key) != self.asker}

    def keep(self, values: Mapping[str, str]) -> dict[str, str]:
        """The values that hold from now on for these keys."""
        offered = {key: value.encode() for key, value in values.items()}
        if self.own is not None:
            held = self.store.memo_known(self.name, offered)
            new = dict.fromkeys(offered.keys() - held.keys(), self.asker.encode())
            self.own.memo_keep(self._writers, new)
        return _decoded(self.store.memo_keep(self.name, offered))

    @property
    def _writers(self) -> str:
        return f"writers of {self.name}"


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
        self._local: dict[str, LocalMemo] = {}

    def __call__(self, name: str, asker: str) -> StoredMemo | LocalMemo:
        """The table of that name, as an item sees it."""
        if self._store is not None:
            return StoredMemo(self._store, self._own, name, asker)
        return self._local.setdefault(name, LocalMemo())


def _decoded(values: Mapping[str, bytes]) -> dict[str, str]:
    return {key: value.decode() for key, value in values.items()}
