# SPDX-License-Identifier: Apache-2.0
"""Where in the program an op came from: source line, module, autograd node, optimizer."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import local
from types import FrameType
from typing import Any

import torch
from torch._C._autograd import _get_sequence_nr
from torch.nn.modules import module as torch_module
from torch.utils._pytree import tree_leaves

from driver.capture.source import UNKNOWN, source_line
from driver.errors import printable

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_TORCH = str(Path(torch.__file__).parent)
_TAG = "npu_module"
"""Key of an autograd node's metadata: the module whose forward made the node."""
_CALL = torch.nn.Module._call_impl.__code__


@dataclass(frozen=True)
class Origin:
    """Where in the program an op came from."""

    source: str
    """file:line outside torch; for a backward op, of the forward op."""
    root: str
    """Class of the outermost running module; empty outside modules. For a backward op, the module
    whose forward made the node."""
    module: str
    """Path of the innermost module below the root."""
    backward: str
    """The autograd node that is running; empty in forward."""
    optimizer: str
    """Class and group of the optimizer that is stepping: "AdamW group 0"; empty elsewhere."""

    @property
    def place(self) -> str:
        """All but the source line; empty where nothing is known."""
        module = f"{self.root}{'.' if self.module else ''}{self.module}"
        if module and self.backward:
            return f"{module} ({self.backward})"
        return module or self.backward or self.optimizer

    def __str__(self) -> str:
        return f"{self.source}, in {self.place}" if self.place else self.source


class Origins(local):
    """The modules that this thread is in, outermost first, from start to stop.

    A module that ends marks the autograd nodes that its forward made: backward ops run in another
    thread, with no module running.
    """

    def __init__(self, on_root: Callable[[torch.nn.Module], None] | None = None) -> None:
        """`on_root` is called with each outermost module when it begins."""
        self._on_root = on_root
        self._running: list[tuple[str, int]] = []
        """Path of each module, and the number of the next autograd node when it was entered."""
        self._root = ""
        self._names: dict[int, str] = {}

    def start(self) -> None:
        """Follow all modules of the process, and let autograd remember where it makes each node."""
        self._anomaly = torch.autograd.set_detect_anomaly(True, check_nan=False)
        self._hooks = [
            torch_module.register_module_forward_pre_hook(self._enter),
            torch_module.register_module_forward_hook(self._leave, always_call=True),
        ]

    def stop(self) -> None:
        """Follow them no more."""
        self._anomaly.__exit__(None, None, None)
        for hook in self._hooks:
            hook.remove()
        self._running.clear()

    def here(self) -> Origin:
        """Of the op that this thread is running."""
        node: Any = torch._C._current_autograd_node()
        source = source_line()
        if node is None:
            root, path = (self._root, self._running[-1][0]) if self._running else ("", "")
            return Origin(source, root, path, "", _optimizer())
        if source == UNKNOWN:
            source = _made_at(node)
        root, path = node.metadata.get(_TAG, ("", ""))
        return Origin(source, root, path, node.name(), "")

    def _enter(self, module: torch.nn.Module, _inputs: Any) -> None:
        if not self._running:
            self._root = type(module).__name__
            if self._on_root is not None:
                self._on_root(module)
            self._names = {id(part): printable(name) for name, part in module.named_modules()}
        path = self._names.get(id(module), type(module).__name__)
        self._running.append((path, _get_sequence_nr()))

    def _leave(self, _module: torch.nn.Module, _inputs: Any, output: Any) -> None:
        if not self._running:
            return
        path, first = self._running.pop()
        for node in _nodes_since(output, first):
            node.metadata.setdefault(_TAG, (self._root, path))


def _nodes_since(output: Any, first: int) -> Iterator[Any]:
    """The autograd nodes below an output, down to those that are older than number `first`."""
    leaves = (x for x in tree_leaves(output) if isinstance(x, torch.Tensor))
    found = [x.grad_fn for x in leaves if x.grad_fn is not None]
    seen = set()
    while found:
        node = found.pop()
        if node in seen or node._sequence_nr() < first:
            continue
        seen.add(node)
        yield node
        found += [below for below, _ in node.next_functions if below is not None]


def _optimizer() -> str:
    """The optimizer whose step is running, and the group of parameters that it is at."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "step":
            values = frame.f_locals
            optimizer = values.get("self")
            if isinstance(optimizer, torch.optim.Optimizer):
                groups = enumerate(optimizer.param_groups)
                at = [number for number, group in groups if group is values.get("group")]
                return f"{type(optimizer).__name__}{f' group {at[0]}' if at else ''}"
        frame = frame.f_back
    return ""


def _made_at(node: Any) -> str:
    """The innermost line outside torch at which an autograd node was made."""
    for frame in reversed(node.metadata.get("traceback_", ())):
        found = _FRAME.search(frame)
        if found and not found["file"].startswith((_TORCH, str(Path(__file__).parent), "<")):
            return f"{Path(found['file']).name}:{found['line']}"
    return UNKNOWN


def place() -> str:
    """Of the running op without an Origins: "at" file and line, then "in" the module as
    LeNet.features.3 (Tanh), or for a backward op its node. "" where neither is known.

    Read from the stack when an error needs it: an op without an error pays nothing for it.
    """
    node = torch._C._current_autograd_node()
    source = source_line()
    parts = [] if source == UNKNOWN else [f"at {source}"]
    module = _module() if node is None else node.name()
    parts += [f"in {module}"] if module else []
    return ", ".join(parts)


def _module() -> str:
    """The innermost running module of this thread, by its path below the outermost one."""
    running: list[torch.nn.Module] = []
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
