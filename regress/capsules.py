# SPDX-License-Identifier: Apache-2.0
"""Capsules of the project's workloads: recorded once per seed and kept under build/capsules.

Knows when a kept capsule is still the one that would be recorded; not how recording works.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path

from filelock import FileLock

from driver.capture import Capsule, load_capsule, save_capsule
from driver.capture.store import DOCUMENT_FILE
from driver.errors import InputError
from regress.paths import BUILD, ROOT

KEPT = BUILD / "capsules"
CAPTURED = ROOT / "workloads"
"""A folder in it that is a capsule is a workload of that name, such as torch.npu.capture writes."""
_SOURCES = ("driver/capture/*.py", "workloads/*.py")
_LIBRARIES = ("torch", "transformers", "scikit-learn", "safetensors")


def known_workloads() -> tuple[str, ...]:
    """Names of the workloads: programs that are recorded, and capsules of programs that ran."""
    from workloads import available  # noqa: PLC0415 (not needed to run a test)

    return (*available(), *sorted(path.parent.name for path in CAPTURED.glob(f"*/{DOCUMENT_FILE}")))


def record(
    workload: str,
    seed: int,
    checkpoint: Path | None,
    *,
    dtype: str | None = None,
    device: str = "cpu",
    progress: Callable[[], object] | None = None,
) -> Capsule:
    """Run a workload, by its name or its file, and record it; `progress` is called with each op.

    InputError for an unknown one, a wrong checkpoint, and for what its own code raises.
    """
    from workloads import capture_workload  # noqa: PLC0415 (torch takes seconds)

    return capture_workload(
        workload, seed=seed, checkpoint=checkpoint, dtype=dtype, device=device, progress=progress
    )


def kept_capsules(
    workloads: Iterable[str],
    seed: int,
    note: Callable[[str], None],
    checkpoint: Path | None = None,
) -> dict[str, Path]:
    """Workload → folder of its capsule of that seed and checkpoint, recorded now where it is
    missing."""
    return {name: _kept(name, seed, note, checkpoint) for name in workloads}


def _kept(workload: str, seed: int, note: Callable[[str], None], checkpoint: Path | None) -> Path:
    captured = CAPTURED / workload
    if (captured / DOCUMENT_FILE).exists():  # it is what it is, whatever the seed
        if checkpoint is not None:
            raise InputError("command line", "CHECKPOINT", checkpoint, f"none for {workload}")
        load_capsule(captured)
        return captured
    path = KEPT / f"{workload}-{seed}-{_fingerprint(checkpoint)}"
    KEPT.mkdir(parents=True, exist_ok=True)
    with FileLock(KEPT / f".{path.name}.lock"):
        try:
            load_capsule(path)
        except InputError:
            note(f"recording workload {workload}, seed {seed}")
            save_capsule(record(workload, seed, checkpoint), path)
    return path


def _fingerprint(checkpoint: Path | None = None) -> str:
    """Changes with everything that decides what is recorded, but for the seed. Of a checkpoint's
    files, which can be gigabytes, it looks at names, sizes and times of change."""
    state = hashlib.sha256()
    if checkpoint is not None:
        state.update(f"{checkpoint};".encode())  # a folder without files is another one than none
        for file in sorted(checkpoint.glob("*")):
            try:
                found = file.stat()
            except OSError as error:
                raise InputError(file, "checkpoint", error.strerror, "a readable file") from error
            state.update(f"{file}:{found.st_size}:{found.st_mtime_ns};".encode())
    for pattern in _SOURCES:
        for file in sorted(ROOT.glob(pattern)):
            state.update(f"{file.name}:{file.stat().st_size}:".encode() + file.read_bytes())
    from driver.lower import LOWERINGS  # noqa: PLC0415 (not needed to run a test)

    state.update(",".join(sorted(LOWERINGS)).encode())  # an op with a row is recorded whole
    for name in _LIBRARIES:
        state.update(f"{name}=={version(name)};".encode())
    return state.hexdigest()[:12]
