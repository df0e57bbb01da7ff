"""The memos of a run's stages: small tables in which the first write of a key wins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.calls.store import Store


@dataclass(frozen=True)
class StoredMemo:
    """A table in the store of calls, shared by every run on this machine."""

    store: Store
    name: str

    def known(self, keys: Iterable[str]) -> dict[str, str]:
        """The values of these keys, of those that have one."""
        return _decoded(self.store.memo_known(self.name, keys))

    def keep(self, values: Mapping[str, str]) -> dict[str, str]:
        """The values that hold from now on for these keys."""
        offered = {key: value.encode() for key, value in values.items()}
        return _decoded(self.store.memo_keep(self.name, offered))


@dataclass(frozen=True)
class LocalMemo:
    """A table of this process, for runs without a store."""

    values: dict[str, str] = field(default_factory=dict)

    def known(self, keys: Iterable[str]) -> dict[str, str]:
        """The values of these keys, of those that have one."""
        return {key: self.values[key] for key in keys if key in self.values}

    def keep(self, values: Mapping[str, str]) -> dict[str, str]:
        """The values that hold from now on for these keys."""
        return {key: self.values.setdefault(key, value) for key, value in values.items()}


class Memory:
    """The tables of a run, in its store or in this process."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._local: dict[str, LocalMemo] = {}

    def __call__(self, name: str) -> StoredMemo | LocalMemo:
        """The table of that name."""
        if self._store is not None:
            return StoredMemo(self._store, name)
        return self._local.setdefault(name, LocalMemo())


def _decoded(values: Mapping[str, bytes]) -> dict[str, str]:
    return {key: value.decode() for key, value in values.items()}
