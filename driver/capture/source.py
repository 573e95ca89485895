# SPDX-License-Identifier: Apache-2.0
"""Where an op comes from: the module path and the line of user code that asked for it."""

from __future__ import annotations

import sys
from pathlib import PurePath
from types import CodeType, FrameType, TracebackType
from typing import Any, Self

import torch
from torch.utils.hooks import RemovableHandle

from driver.errors import printable

_INTERNAL = ("torch", "driver.capture", "driver.torch_device")
UNKNOWN = "unknown:0"


class ModulePath:
    """Follows which of a model's modules is running, by hooks on all of them while entered.

    A module that is called by its `forward` instead of by itself is not seen: its ops are
    accounted to its caller. A module registered under two names goes by the first.
    """

    def __init__(self, root: torch.nn.Module) -> None:
        self._root = root
        self._running: list[str] = []
        self._hooks: list[RemovableHandle] = []

    @property
    def current(self) -> str:
        """Path of the innermost running module; "" for the root."""
        return self._running[-1] if self._running else ""

    def __enter__(self) -> Self:
        for name, module in self._root.named_modules():
            if not isinstance(module, torch.jit.ScriptModule):  # takes no hooks
                self._watch(printable(name), module)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()
        self._running.clear()

    def _watch(self, name: str, module: torch.nn.Module) -> None:
        def enter(_module: torch.nn.Module, _inputs: Any) -> None:
            self._running.append(name)

        def leave(_module: torch.nn.Module, _inputs: Any, _output: Any) -> None:
            self._running.pop()

        self._hooks.append(module.register_forward_pre_hook(enter, prepend=True))
        self._hooks.append(module.register_forward_hook(leave, always_call=True))


def source_line(stop: CodeType | None = None) -> str:
    """`package/file.py:line` of the innermost frame outside torch, looking up to `stop`'s frame.

    A model made of torch's own modules only has no such frame: then it is torch's line that made
    the call. Paths start at the top-level package, so they are the same on every machine.
    """
    frame: FrameType | None = sys._getframe(1)
    fallback = UNKNOWN
    while frame is not None and frame.f_code is not stop:
        name = str(frame.f_globals.get("__name__", ""))
        generated = frame.f_code.co_filename.startswith("<")
        if not generated and not _is_internal(name):
            return _relative(frame, name)
        if fallback == UNKNOWN and name.startswith("torch.nn."):
            fallback = _relative(frame, name)
        frame = frame.f_back
    return fallback


def _is_internal(module_name: str) -> bool:
    return any(module_name == root or module_name.startswith(root + ".") for root in _INTERNAL)


def _relative(frame: FrameType, module_name: str) -> str:
    path = PurePath(frame.f_code.co_filename)
    depth = 1 if module_name == "__main__" else module_name.count(".") + 1
    if path.stem == "__init__":
        depth += 1
    return printable(f"{'/'.join(path.parts[1:][-depth:])}:{frame.f_lineno}")
