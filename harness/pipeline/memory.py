"""Small tables that outlive a run: the first write of a key wins."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.calls.store import Store


@dataclass(frozen=True)
class StoredMemo:
    """A table in the store of calls, shared by every run on this machine."""

    store: Store
    name: str

    def get(self, key: str) -> str | None:
        """The value of a key, None where nobody wrote one."""
        found = self.store.memo_get(self.name, key)
        return None if found is None else found.decode()

    def put(self, key: str, value: str) -> str:
        """The value that holds from now on."""
        return self.store.memo_put(self.name, key, value.encode()).decode()


@dataclass(frozen=True)
class LocalMemo:
    """A table of this process, for runs without a store."""

    values: dict[str, str] = field(default_factory=dict)

    def get(self, key: str) -> str | None:
        """The value of a key, None where nobody wrote one."""
        return self.values.get(key)

    def put(self, key: str, value: str) -> str:
        """The value that holds from now on."""
        return self.values.setdefault(key, value)


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
