# SPDX-License-Identifier: Apache-2.0
"""The folder that a run writes into: locked for one run, and never cleared of a user's files.

A manifest in the folder records what runs left there. Only that is removed or written over; where
something else is in the way, the run is refused before it starts. Symbolic links are not followed
below the folder. Knows no test and no result.
"""

from __future__ import annotations

import contextlib
import shutil
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final

from filelock import FileLock, Timeout
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from driver.errors import InputError, ProcessRefused, unwritable
from driver.files import read_json, write_json, write_text
from driver.frozen import Frozen

MANIFEST: Final = ".npu-cosim.json"
ASIDE: Final = ".npu-cosim.former"
"""What earlier runs left, while a run may still be refused."""
LOCK_FILE: Final = ".lock"
"""Of single runs and of nightlies: neither writes into the folder of the other."""


def stays_inside(path: str) -> bool:
    """Whether a relative path, as files and other machines name it, leads to no other place."""
    return not path.startswith("/") and ".." not in path.split("/")


def _below(path: str) -> str:
    if not stays_inside(path) or {".", ""} & {*path.split("/")}:
        raise PydanticCustomError("outside", "a path below the folder")
    return path


def _directly_below(path: str) -> str:
    if "/" in path:
        raise PydanticCustomError("outside", "a name directly in the folder")
    return _below(path)


Below = Annotated[str, AfterValidator(_below)]
Name = Annotated[str, AfterValidator(_directly_below)]


class Manifest(Frozen):
    """What runs have made in a folder."""

    files: tuple[Below, ...] = ()
    """Paths of files, relative to the folder, that runs have left."""
    begun: tuple[Name, ...] = ()
    """Names directly in the folder that were free when a run began which has not ended: whatever
    has one of them is that run's, whole."""


@contextlib.contextmanager
def locked(folder: Path, field: str) -> Iterator[None]:
    """The folder, existing and this process's alone; if it is refused, as it was before.

    InputError, naming the option `field`, when another run has it or when it cannot be written.
    """
    try:
        new = [path for path in (folder, *folder.parents) if not path.exists()]
        had_lock = (folder / LOCK_FILE).exists()
        folder.mkdir(parents=True, exist_ok=True)
        if not _regular_or_absent(folder / LOCK_FILE):
            raise _in_the_way(folder / LOCK_FILE, field)
        lock = FileLock(folder / LOCK_FILE)
        lock.acquire(blocking=False)
    except Timeout as error:
        raise InputError(folder, field, "in use by another run", "a folder of its own") from error
    except OSError as error:
        expected = "a folder that can be written"
        raise unwritable(folder, field, error, expected) from error
    try:
        yield
    except (InputError, ProcessRefused):
        if not had_lock:
            (folder / LOCK_FILE).unlink(missing_ok=True)
        for path in new:
            with contextlib.suppress(OSError):  # not empty
                path.rmdir()
        raise
    finally:
        lock.release()


@contextlib.contextmanager
def fresh(folder: Path, names: Iterable[str]) -> Iterator[None]:
    """The names directly in `folder`, free: what earlier runs left under them is removed, and what
    is under them at the end is recorded.

    InputError, and nothing removed, when one of them is in use by something that no run left. A run
    that is refused leaves under them what was there.
    """
    names = tuple(names)
    former = _manifest(folder)
    own = (*names, ASIDE)
    for name in own:
        _check_free(folder, name, former)
    for name in former.begun:
        _remove(folder, name, former)
    kept = tuple(path for path in former.files if path.split("/")[0] not in names)
    write_json(folder / MANIFEST, Manifest(files=kept, begun=own))
    aside = [name for name in names if present(folder / name)]
    _move(aside, folder, folder / ASIDE)
    try:
        yield
    except (InputError, ProcessRefused):
        for name in names:
            _remove(folder, name, Manifest(begun=names))
        _move(aside, folder / ASIDE, folder)
        raise
    finally:
        _remove(folder, ASIDE, Manifest(begun=own))
        made = [path for name in names for path in _files(folder / name)]
        found = sorted({*kept, *(path.relative_to(folder).as_posix() for path in made)})
        with contextlib.suppress(InputError):  # a full disk: what is `begun` remains the run's
            if found:
                write_json(folder / MANIFEST, Manifest(files=tuple(found)))
            else:
                (folder / MANIFEST).unlink(missing_ok=True)


def _move(names: Iterable[str], source: Path, target: Path) -> None:
    for name in names:
        target.mkdir(exist_ok=True)
        (source / name).rename(target / name)


def keep_text(folder: Path, name: str, text: str) -> Path:
    """Write a text file of a run that has ended, and record it; its path.

    InputError when something that no run left has that name.
    """
    former = _manifest(folder)
    _check_free(folder, name, former)
    files = tuple(sorted({*former.files, name}))
    if files != former.files:
        write_json(folder / MANIFEST, former.model_copy(update={"files": files}))
    write_text(folder / name, text)
    return folder / name


def present(path: Path) -> bool:
    """Whether there is anything at `path`. InputError where one may not look."""
    return _mode(path) is not None


def check_absent(path: Path, field: str) -> None:
    """InputError when there is something at `path`."""
    if present(path):
        raise _in_the_way(path, field)


def _manifest(folder: Path) -> Manifest:
    path = folder / MANIFEST
    return read_json(path, Manifest) if present(path) else Manifest()


def _check_free(folder: Path, name: str, former: Manifest) -> None:
    path = folder / name
    if _mode(path) is None or (name in former.begun and not path.is_symlink()):
        return
    if path.is_dir() and not path.is_symlink():
        foreign = [found for found in _files(path) if not _recorded(folder, found, former)]
    else:
        foreign = [] if _recorded(folder, path, former) else [path]
    if foreign:
        raise _in_the_way(foreign[0], "OUT")


def _in_the_way(path: Path, field: str) -> InputError:
    expected = "nothing there, or what an earlier run left: move it away, or give another folder"
    return InputError(path, field, "something that no run made", expected)


def _recorded(folder: Path, path: Path, former: Manifest) -> bool:
    """Whether a run left this very file: one that is a link or a folder by now is the user's."""
    return path.relative_to(folder).as_posix() in former.files and _regular_or_absent(path)


def _remove(folder: Path, name: str, former: Manifest) -> None:
    """What runs left under a name, and the folders that are empty then."""
    path = folder / name
    if path.is_symlink():
        return
    if name in former.begun and path.is_dir():
        shutil.rmtree(path)
        return
    for found in _files(path):
        if name in former.begun or _recorded(folder, found, former):
            found.unlink()
    if path.is_dir():
        below = (found for found in path.rglob("*") if found.is_dir() and not found.is_symlink())
        for found in (*sorted(below, reverse=True), path):
            with contextlib.suppress(OSError):  # not empty
                found.rmdir()


def _files(path: Path) -> list[Path]:
    """`path` itself, or everything below it that is no folder; links are not followed."""
    mode = _mode(path)
    if mode is None:
        return []
    if not stat.S_ISDIR(mode):
        return [path]
    return [found for entry in sorted(path.iterdir()) for found in _files(entry)]


def _mode(path: Path) -> int | None:
    """Of the path itself, not of what a link names; None when there is nothing."""
    try:
        return path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise InputError(path, "file", error.strerror, "a folder that can be read") from error


def _regular_or_absent(path: Path) -> bool:
    mode = _mode(path)
    return mode is None or stat.S_ISREG(mode)
