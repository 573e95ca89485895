# SPDX-License-Identifier: Apache-2.0
"""Models to capture. Each file of this folder is one, found by its name.

To add a model, copy mlp.py: a workload is a file with a `DESCRIPTION` and a function
`build(seed, checkpoint)` that returns the module and its inputs. A variant is a line in VARIANTS.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from driver.errors import InputError

if TYPE_CHECKING:
    import torch

    from driver.capture import Capsule

    Inputs = tuple[torch.Tensor, ...] | Mapping[str, torch.Tensor]
    Build = Callable[[int, Path | None], tuple[torch.nn.Module, Inputs]]

_FOLDER = Path(__file__).parent

VARIANTS: dict[str, tuple[str, dict[str, int | str]]] = {
    "qwen_layer_32": ("qwen_layer", {"tokens": 32}),
    "qwen_layer_bf16": ("qwen_layer", {"dtype": "bfloat16"}),
    "qwen_layer_bf16_32": ("qwen_layer", {"dtype": "bfloat16", "tokens": 32}),
    "qwen_prefill": ("qwen", {"tokens": 1}),
    "qwen_small": ("qwen", {"layers": 2, "tokens": 2}),
}
"""Name → the file it is a variant of, and the options its `build` gets."""


@dataclass(frozen=True)
class Workload:
    """A model by name; `build(seed, checkpoint)` makes it and its inputs."""

    name: str
    description: str
    build: Build


def available() -> tuple[str, ...]:
    """Names of all workloads, sorted."""
    files = [file.stem for file in _FOLDER.glob("*.py") if not file.stem.startswith("_")]
    return tuple(sorted([*files, *VARIANTS]))


def load_workload(name: str) -> Workload:
    """The workload of that name.

    Raises:
        InputError: there is none; the message lists those there are.
    """
    if name not in available():
        raise InputError("workloads", "name", name, f"one of {', '.join(available())}")
    file, options = VARIANTS.get(name, (name, {}))
    module = importlib.import_module(f"workloads.{file}")
    told = "".join(f", {key} {value}" for key, value in options.items())
    return Workload(name, module.DESCRIPTION + told, partial(module.build, **options))


def capture_workload(name: str, *, seed: int = 0, checkpoint: Path | None = None) -> Capsule:
    """Build a workload and capture one run of it.

    Raises:
        InputError: unknown workload, or a checkpoint that does not fit it.
    """
    from driver.capture import capture  # noqa: PLC0415 (torch takes seconds to import)

    module, inputs = load_workload(name).build(seed, checkpoint)
    return capture(module, inputs, name=name, seed=seed)
