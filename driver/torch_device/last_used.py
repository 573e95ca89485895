# SPDX-License-Identifier: Apache-2.0
"""A dictionary of bounded size that drops what was not used for the longest time."""

from __future__ import annotations

from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key")
Kept = TypeVar("Kept")
REMEMBERED = 4096
"""So many entries by default."""


class LastUsed(Generic[Key, Kept]):
    """May be used by several threads."""

    def __init__(self, most: int = REMEMBERED) -> None:
        self._most = most
        self._entries: dict[Key, Kept] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: Key) -> Kept | None:
        """The entry, used now; None when there is none."""
        with self._lock:
            found = self._entries.pop(key, None)
            if found is not None:
                self._entries[key] = found
            return found

    def put(self, key: Key, kept: Kept) -> None:
        """Add or replace an entry."""
        with self._lock:
            self._entries.pop(key, None)
            self._entries[key] = kept
            if len(self._entries) > self._most:
                del self._entries[next(iter(self._entries))]
