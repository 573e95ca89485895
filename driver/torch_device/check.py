# SPDX-License-Identifier: Apache-2.0
"""Check mode: whether ops are judged as they run, and from where in the program they came.

Light, as every process that imports torch has it: the judge is imported with the first op checked.
"""

from __future__ import annotations

import atexit
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, local
from types import TracebackType
from typing import Any

import torch
from torch.nn.modules import module as torch_module

from driver.capture.source import UNKNOWN, source_line
from driver.random_stream import RandomStream

CAPSULES = Path("npu_check")
_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_TORCH = str(Path(torch.__file__).parent)

Finish = Callable[[Sequence[torch.Tensor | None]], None]
"""Judges a row by its results, once it has run."""


class WrongResult(RuntimeError):
    """An op of the NPU computed something that the judge does not admit."""


@dataclass
class CheckReport:
    """What has been checked so far."""

    ops: int = 0
    elements: int = 0
    """Elements compared within a derived bound."""
    not_judged: Counter[str] = field(default_factory=Counter)
    """Rows without a bound for such a call, and how often they ran."""

    def __str__(self) -> str:
        text = f"{self.ops} ops checked, {self.elements} elements within their bounds"
        missing = ", ".join(f"{op} ({count})" for op, count in sorted(self.not_judged.items()))
        return f"{text}; without a bound: {missing}" if missing else text


@dataclass(frozen=True)
class Origin:
    """Where in the program an op came from."""

    source: str
    """file:line outside torch; for a backward op, of the forward op."""
    root: str
    """Class of the outermost running module; empty outside modules and in backward."""
    module: str
    """Path of the innermost one below it."""
    backward: str
    """The autograd node that is running; empty in forward."""

    def __str__(self) -> str:
        text = self.source
        if self.backward:
            text += f", in {self.backward}"
        elif self.root:
            text += f", in {self.root}{'.' if self.module else ''}{self.module}"
        return text


class Check:
    """Judges every op of all devices inside a `with` block, forward and backward."""

    def __init__(self, folder: str | Path = CAPSULES) -> None:
        """`folder`: where the capsule of the first wrong op goes."""
        self.folder = Path(folder)
        self.report = CheckReport()
        self.lock = Lock()
        self._modules = _RunningModules()
        self._anomaly: torch.autograd.set_detect_anomaly | None = None

    def __enter__(self) -> CheckReport:
        if _ACTIVE:
            raise RuntimeError("npu: a check is running already")
        self._modules.start()
        # autograd then remembers where each node was made: the source of its backward ops
        self._anomaly = torch.autograd.set_detect_anomaly(True, check_nan=False)
        _ACTIVE.append(self)
        return self.report

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _ACTIVE.remove(self)
        assert self._anomaly is not None
        self._anomaly.__exit__(kind, error, trace)
        self._modules.stop()

    def origin(self) -> Origin:
        """Of the op that this thread is running."""
        node = torch._C._current_autograd_node()
        source = source_line()
        if node is not None and source == UNKNOWN:
            source = _made_at(node)
        root, path = ("", "") if node is not None else self._modules.current
        return Origin(source, root, path, "" if node is None else node.name())


_ACTIVE: list[Check] = []
"""The running check, if there is one. Not of a thread: autograd runs backward ops in its own."""


def begin(
    row: str, args: Sequence[Any], kwargs: Mapping[str, Any], stream: RandomStream | None
) -> Finish | None:
    """Before a row runs: keep its arguments. None when nothing is checked."""
    if not _ACTIVE:
        return None
    from driver.torch_device.judging import CheckedRow  # noqa: PLC0415 (see above)

    return CheckedRow(_ACTIVE[0], row, args, kwargs, stream).judge


def check_whole_process() -> None:
    """NPU_CHECK=1: until the process ends, and say then what was checked."""
    report = Check().__enter__()
    atexit.register(lambda: sys.stderr.write(f"[NPU] {report}\n"))


# ---------------------------------------------------------------------- origins
class _RunningModules(local):
    """The modules that this thread is in, outermost first, from start to stop."""

    def __init__(self) -> None:
        self._running: list[str] = []
        self._root = ""
        self._names: dict[int, str] = {}

    @property
    def current(self) -> tuple[str, str]:
        """Class of the outermost one, and the path of the innermost one below it."""
        return (self._root, self._running[-1]) if self._running else ("", "")

    def start(self) -> None:
        self._hooks = [
            torch_module.register_module_forward_pre_hook(self._enter),
            torch_module.register_module_forward_hook(self._leave, always_call=True),
        ]

    def stop(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._running.clear()

    def _enter(self, module: torch.nn.Module, _inputs: Any) -> None:
        if not self._running:
            self._root = type(module).__name__
            self._names = {id(part): name for name, part in module.named_modules()}
        self._running.append(self._names.get(id(module), type(module).__name__))

    def _leave(self, _module: torch.nn.Module, _inputs: Any, _output: Any) -> None:
        if self._running:
            self._running.pop()


def _made_at(node: Any) -> str:
    """The innermost line outside torch at which an autograd node was made."""
    for frame in reversed(node.metadata.get("traceback_", ())):
        found = _FRAME.search(frame)
        if found and not found["file"].startswith((_TORCH, str(Path(__file__).parent), "<")):
            return f"{Path(found['file']).name}:{found['line']}"
    return UNKNOWN
