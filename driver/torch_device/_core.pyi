# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable

import torch

TORCH_VERSION: str

def start(
    device_count: int,
    allocate: Callable[[int, int], int],
    copy: Callable[[int, int, int, int], None],
    cycles: Callable[[int], float],
) -> None: ...
def take_released() -> list[tuple[int, int]]: ...
def default_generator(device: int) -> torch.Generator: ...
def next_stream(generator: torch.Generator) -> tuple[int, int]: ...
