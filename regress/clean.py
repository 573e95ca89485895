# SPDX-License-Identifier: Apache-2.0
"""`make clean`: remove build/ and out/, but for the results in out/nightly.

Refuses, with nothing removed, while a run or a build holds a lock in them. Needs no .venv: imports
the standard library alone.
"""

from __future__ import annotations

import fcntl
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KEPT = "nightly"


def in_use(folders: list[Path]) -> Path | None:
    """The first folder below these whose lock is held."""
    for folder in folders:
        for lock in sorted(folder.rglob("*.lock")):
            if lock.is_symlink() or not lock.is_file():
                continue
            with lock.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return lock.parent
    return None


def clean(root: Path) -> str | None:
    """Remove them below `root`; why not, where something in them is in use or cannot be removed."""
    build, out = root / "build", root / "out"
    busy = in_use([build, out])
    if busy is not None:
        return f"{busy.relative_to(root)}: in use by a run or a build: wait for it, or stop it"
    made = [path for path in out.glob("*") if path.name != KEPT]
    try:
        for path in (build, *made):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"
    return None


def main() -> int:
    """Exit status: 0 when they are gone, else 2."""
    refused = clean(ROOT)
    if refused is not None:
        sys.stderr.write(f"error: clean: {refused}\n")
        return 2
    sys.stdout.write("removed build/ and out/, but for the results in out/nightly; .venv stays\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
