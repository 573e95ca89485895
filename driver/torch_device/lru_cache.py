# SPDX-License-Identifier: Apache-2.0
"""A dictionary of bounded size that drops what was not used for the longest time."""

from __future__ import annotations

from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Kept = TypeVar("Kept")
DEFAULT_ENTRIES = 4096
"""So many entries by default."""
_MOST_BYTES = 256 << 20


class LruCache(Generic[Key, Kept]):
    """May be used by several threads."""

    def __init__(self, most: int = DEFAULT_ENTRIES, most_bytes: int = _MOST_BYTES) -> None:
        """`most_bytes`: of the sizes that entries are given with."""
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._entries: dict[Key, tuple[Kept, int]] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Kept | None:
        """The entry, used now; None when there is none."""
        with self._lock:
            found = self._entries.pop(key, None)
            if found is None:
                return None
            self._entries[key] = found
            return found[0]

    def put(self, key: Key, kept: Kept, size_bytes: int = 0) -> None:
        """Add or replace an entry. One that alone is larger than all may be is not kept."""
        with self._lock:
            self._drop(key)
            self._entries[key] = kept, size_bytes
            self._bytes += size_bytes
            while len(self._entries) > self._most or self._bytes > self._most_bytes:
                self._drop(next(iter(self._entries)))

    def _drop(self, key: Key) -> None:
        found = self._entries.pop(key, None)
        if found is not None:
            self._bytes -= found[1]
