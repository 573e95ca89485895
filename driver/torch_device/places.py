# SPDX-License-Identifier: Apache-2.0
"""Where in the program an op was called: read from the stack when an error needs it, so that an op
without an error pays nothing for it."""

from __future__ import annotations

import sys
from types import FrameType

import torch
from torch import nn

from driver.capture.source import UNKNOWN, source_line
from driver.errors import printable

_CALL = nn.Module._call_impl.__code__


def place() -> str:
    """File and line, then the module as LeNet.features.3 (Tanh), or for a backward op its node.

    "" where neither is known.
    """
    node = torch._C._current_autograd_node()
    source = source_line()
    parts = [] if source == UNKNOWN else [source]
    module = _module() if node is None else node.name()
    parts += [f"in {module}"] if module else []
    return ", ".join(parts)


def _module() -> str:
    """The innermost running module of this thread, by its path below the outermost one."""
    running: list[nn.Module] = []
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code is _CALL:
            running.append(frame.f_locals["self"])
        frame = frame.f_back
    if not running:
        return ""
    inner, root = running[0], running[-1]
    path = next((name for name, part in root.named_modules() if part is inner), "")
    if not path:
        return type(inner).__name__
    return f"{type(root).__name__}.{printable(path)} ({type(inner).__name__})"
