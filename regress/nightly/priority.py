# SPDX-License-Identifier: Apache-2.0
"""Which items first: recently failed, then those whose sources changed, then the longest unseen.

Reads what the store remembers and what git says; runs no test.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from regress.paths import ROOT
from regress.results.model import PastAttempt, PlannedJob

_GIT_LIMIT_S = 30
_RECENT_PLANS = 3
"""A failure so many plans ago, or fewer, is recent."""


AttemptHistory = Mapping[str, Sequence[PastAttempt]]
"""Item → its executed attempts, newest first."""
ChangedPaths = Callable[[str], frozenset[str] | None]
"""Revision → paths that differ from it now; None when it is unknown."""


def by_priority(
    items: Iterable[PlannedJob], record: AttemptHistory, changed: ChangedPaths, sequence: int
) -> tuple[PlannedJob, ...]:
    """Most valuable first. `sequence` is the plan's that will run."""

    def key(item: PlannedJob) -> tuple[bool, bool, int, int]:
        seen = record.get(item.id, ())
        recent = [entry for entry in seen if entry.sequence >= sequence - _RECENT_PLANS]
        failed = any(entry.status.red for entry in recent)
        last = seen[0] if seen else None
        touched = last is None or _touched(item, changed(last.revision))
        return not failed, not touched, 0 if last is None else last.sequence, item.ordinal

    return tuple(sorted(items, key=key))


def _touched(item: PlannedJob, paths: frozenset[str] | None) -> bool:
    """Whether something that the item is about has changed."""
    if paths is None:
        return True
    if not item.areas:
        return bool(paths)
    return any(path == area or path.startswith(f"{area}/") for path in paths for area in item.areas)


@lru_cache(maxsize=64)
def changed_since(revision: str, root: Path = ROOT) -> frozenset[str] | None:
    """The paths whose content differs from a commit, uncommitted changes included."""
    if not revision:
        return None
    command = ["git", "diff", "--name-only", "-z", revision, "--"]
    try:
        done = subprocess.run(
            command, cwd=root, capture_output=True, text=True, timeout=_GIT_LIMIT_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None  # no git, or a commit that is gone: everything may have changed
    return frozenset(path for path in done.stdout.split("\0") if path)
