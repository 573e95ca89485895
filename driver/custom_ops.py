# SPDX-License-Identifier: Apache-2.0
"""Custom ops of this process: what golden and the benches know of them.

`torch.npu.custom_op` (driver.torch_device.custom_ops) fills it. Imports no torch.
"""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driver.errors import ENVIRONMENT, InputError, NpuError


@dataclass(frozen=True)
class CustomOp:
    """An op outside torch and this project."""

    name: str
    """Its overload, as mylib.quantize.default."""
    bound: Any
    """A rule of golden.bounds."""
    samples: tuple[tuple[Any, ...], ...]
    """Arguments to try it with; tensors as tb.ops.samples.T."""
    dtypes: tuple[Any, ...]
    """torch's types that the samples are tried in."""
    file: Path
    """Where it is declared."""


_OPS: dict[str, CustomOp] = {}
CUSTOM_OPS: Mapping[str, CustomOp] = _OPS
"""By name, in the order of their declaration."""


def declare(op: CustomOp) -> None:
    """Add an op, in place of an older one of its name."""
    _OPS[op.name] = op


def replay_options(name: str) -> str:
    """What `make replay` needs besides a capsule of this op; "" for ops of torch."""
    return f" CUSTOM_OPS={CUSTOM_OPS[name].file}" if name in CUSTOM_OPS else ""


@contextmanager
def named_user_errors(file: Path) -> Iterator[None]:
    """Exceptions that pass through code of `file` become an InputError with the line of it that
    was running: the file is its user's input."""
    try:
        yield
    except (Exception, SystemExit) as error:  # whoever ends the process ends its run
        mistake = _mistake_in(file, error)
        if mistake is None:
            raise
        raise mistake from error


def _mistake_in(file: Path, error: Exception | SystemExit) -> InputError | None:
    """None where no line of the file was running, for verdicts and failures of machinery, and for
    variables of the environment, which are nothing that the file says."""
    if isinstance(error, SyntaxError) and error.filename == str(file):
        return InputError(f"{file}:{error.lineno}", "syntax", error.msg, "Python")
    frames = traceback.extract_tb(error.__traceback__)
    frame = next((frame for frame in reversed(frames) if frame.filename == str(file)), None)
    if frame is None or (isinstance(error, NpuError) and not isinstance(error, InputError)):
        return None
    place = f"{file}:{frame.lineno}"
    if isinstance(error, InputError):
        if error.file == ENVIRONMENT:
            return None
        return InputError(place, f"{error.file}: {error.field}", error.value, error.expected)
    where = "file" if frame.name == "<module>" else frame.name
    found = f"{type(error).__name__}: {error}"
    return InputError(place, where, found, "code that runs without an exception")


def load_custom_ops(file: Path) -> tuple[CustomOp, ...]:
    """The ops that a Python file declares. InputError where it does not load or declares none."""
    if not file.is_file():
        raise InputError("command line", "custom-ops", file, "a Python file that is there")
    before = dict(_OPS)
    name = f"_custom_ops_{file.stem}"
    found = importlib.util.spec_from_file_location(name, file)
    if found is None or found.loader is None:
        raise InputError(file, "file", file.name, "a Python file, which ends in .py")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    try:
        with named_user_errors(file):
            found.loader.exec_module(module)
    except NpuError:
        raise
    except Exception as error:  # before its first line ran
        raise InputError(
            file, "file", f"{type(error).__name__}: {error}", "one that loads"
        ) from error
    made = tuple(op for op in _OPS.values() if before.get(op.name) is not op)
    if not made:
        raise InputError(file, "ops", "none", "a function under torch.npu.custom_op")
    return made
