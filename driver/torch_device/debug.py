# SPDX-License-Identifier: Apache-2.0
"""torch.npu.debug: what the device does, a line each on stderr.

Level 1: ops; 2: copies and views as well; 3: the packets of each op as well. Colours on a terminal
only. Ops run one by one while any level is on.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from driver.errors import InputError
from driver.torch_device import _core

OPS, COPIES, PACKETS = 1, 2, 3
_COLOURS = {"NPU": 32, "CPU": 31, "COPY": 36, "VIEW": 34, "PACKET": 90}
_PRODUCTS = ("mm", "bmm", "mv", "dot")
_UNITS = (("GB", 1 << 30), ("MB", 1 << 20), ("KB", 1 << 10))
_level = 0


def enable(level: int = OPS) -> None:
    """Print from now on. InputError for a level other than 0 to 3."""
    global _level  # noqa: PLW0603
    if level not in range(PACKETS + 1):
        raise InputError("torch.npu.debug", "level", level, f"0 to {PACKETS}")
    watch_views = level >= COPIES
    if watch_views != (_level >= COPIES):
        _core.watch_views(_view_line if watch_views else None)
    _level = level


def disable() -> None:
    """Print no more."""
    enable(0)


@contextmanager
def debug_mode(level: int = OPS) -> Iterator[None]:
    """Print inside a `with` block."""
    before = _level
    enable(level)
    try:
        yield
    finally:
        enable(before)


def prints(level: int) -> bool:
    """Whether lines of this level are wanted."""
    return _level >= level


def line(tag: str, text: str) -> None:
    """One line, such as `[NPU] mm [2x3] @ [3x4]`."""
    label = f"[{tag}]"
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR"):
        label = f"\033[{_COLOURS[tag]}m{label}\033[0m"
    sys.stderr.write(f"{label} {text}\n")


def op_text(op: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> str:
    """An op with its arguments: mm [128x768] @ [768x3072]."""
    name = str(op).split(".")[1]
    given = [_text(value) for value in args]
    given += [f"{key}={_text(value)}" for key, value in kwargs.items() if key != "out"]
    return f"{name} {(' @ ' if name in _PRODUCTS else ', ').join(given)}".rstrip()


def copy_line(source: torch.Tensor, target: torch.Tensor) -> None:
    """A copy between host and device, or two devices: H→D 384 KB."""
    way = "→".join("D" if x.device.type == "npu" else "H" for x in (source, target))
    line("COPY", f"{way} {size_text(target.nbytes)}")


def _view_line(sizes: Sequence[int], view: Sequence[int]) -> None:
    """A tensor seen in another way, without a copy: [3x4] → [4x3]."""
    line("VIEW", f"{_dims(sizes)} → {_dims(view)}")


def size_text(size_bytes: int) -> str:
    """A size as people read it: 1.5 MB."""
    for unit, scale in _UNITS:
        if size_bytes >= scale:
            return f"{size_bytes / scale:.4g} {unit}"
    return f"{size_bytes} B"


def _dims(sizes: Sequence[int]) -> str:
    return f"[{'x'.join(map(str, sizes))}]"


def _text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return _dims(value.shape)
    if isinstance(value, list | tuple):
        return f"({', '.join(map(_text, value))})"
    return str(value)
