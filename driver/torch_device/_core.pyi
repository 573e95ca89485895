# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

TORCH_VERSION: str

class Program: ...

class Mark:
    def reach(self, cycles: float) -> None: ...

def start(
    device_count: int,
    allocate: Callable[[int, int], int],
    copy: Callable[[int, int, int, int], None],
    submit: Callable[[int, int], None],
    wait: Callable[[int], None],
    is_idle: Callable[[int], bool],
    record: Callable[[int, Mark], None],
) -> None: ...
def take_released(device: int) -> list[int]: ...
def forget_memory(device: int) -> None: ...
def address(pointer: int) -> int: ...
def default_generator(device: int) -> torch.Generator: ...
def next_stream(generator: torch.Generator) -> tuple[int, int]: ...
def program(
    op: str,
    operands: int,
    packets: int,
    image: NDArray[np.uint64],
    words: NDArray[np.int64],
    symbols: NDArray[np.int64],
    sections: Sequence[tuple[int, int]],
) -> Program: ...
def enqueue(device: int, program: Program, operands: Sequence[int]) -> None: ...
def take_batch(
    device: int,
) -> tuple[bytes, int, bytes, list[tuple[int, str]]] | None: ...
def set_contents_memory(device: int, address: int, capacity: int) -> None: ...
def signature(
    op: object, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[bytes, list[torch.Tensor]] | None: ...
def remember(
    key: bytes,
    op: object,
    program: Program,
    operands: Sequence[int],
    results: list[int | tuple[list[int], list[int], torch.dtype] | None],
    overlaps: Sequence[tuple[int, int, int, int, bool]],
) -> None: ...
def replayed(op: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any: ...
def remembered() -> int: ...
def forget_calls() -> None: ...
