# SPDX-License-Identifier: Apache-2.0
"""Weights for workloads: seeded random numbers, or a local checkpoint folder. Never a network."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from driver.errors import InputError
from driver.regular import check_regular, read_regular

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_INDEX_LIMIT = 1 << 28
"""Bytes."""


def random_weights(module: torch.nn.Module, generator: torch.Generator, std: float) -> None:
    """Fill every parameter: normal around 0, and around 1 where it scales a normalisation.

    Draw random inputs from the same generator: a second one of the same seed would repeat the
    weights' numbers, and inputs that are a multiple of a weight row are not typical data.
    """
    for name, parameter in module.named_parameters():
        centre = 1.0 if name.endswith("norm.weight") else 0.0
        with torch.no_grad():
            parameter.normal_(centre, std, generator=generator)


@contextlib.contextmanager
def single_thread() -> Iterator[None]:
    """The last bits of torch's sums depend on the number of threads: one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def checkpoint_weights(module: torch.nn.Module, folder: Path) -> None:
    """Fill every parameter from a folder of safetensors, one file or several with an index.

    Tensors are found by the parameters' names and converted to their type.

    Raises:
        InputError: folder, file or tensor is missing, or a tensor has another shape.
    """
    files = _tensor_files(folder)
    for name, parameter in module.named_parameters():
        file = files.get(name)
        if file is None:
            raise InputError(str(folder), name, "missing", "a tensor of this name")
        check_regular(file, "a safetensors file")
        try:
            with safe_open(file, framework="pt") as tensors:
                loaded = tensors.get_tensor(name)
        except (OSError, SafetensorError) as error:
            raise InputError(str(file), name, str(error), "a readable tensor") from error
        if loaded.shape != parameter.shape:
            wanted = f"shape {tuple(parameter.shape)}"
            raise InputError(str(file), name, f"shape {tuple(loaded.shape)}", wanted)
        with torch.no_grad():
            parameter.copy_(loaded)


def _tensor_files(folder: Path) -> dict[str, Path]:
    """Which file holds each tensor."""
    if not folder.is_dir():
        raise InputError(str(folder), "checkpoint", "no such folder", "a local checkpoint folder")
    index = folder / _INDEX
    if index.exists():
        text = read_regular(index, "an index of tensors", _INDEX_LIMIT)
        try:
            table = json.loads(text)["weight_map"]
            return {str(name): folder / Path(str(file)).name for name, file in table.items()}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise InputError(str(index), "weight_map", repr(error), "tensor: file name") from error
    single = folder / _SINGLE
    check_regular(single, f"{_SINGLE} or {_INDEX}")
    try:
        with safe_open(single, framework="pt") as tensors:
            return dict.fromkeys(tensors.keys(), single)
    except (OSError, SafetensorError) as error:
        raise InputError(str(single), "file", str(error), f"{_SINGLE} or {_INDEX}") from error
