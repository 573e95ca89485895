# SPDX-License-Identifier: Apache-2.0
"""Models to capture. Each file of this folder is one, found by its name.

To add a model, copy mlp.py: a workload is a file with a `DESCRIPTION` and a function
`build(seed, checkpoint)` that returns the module and its inputs. A variant is a line in VARIANTS.
A file anywhere else is a workload too, by its path.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driver.errors import InputError
from workloads._load import blamed, checked, module_of, own_file

if TYPE_CHECKING:
    import torch

    from driver.capture import Capsule

    Inputs = tuple[torch.Tensor, ...] | Mapping[str, torch.Tensor]
    Build = Callable[..., tuple[torch.nn.Module, Inputs]]

_FOLDER = Path(__file__).parent
_COMMAND_LINE = "command line"
DTYPES = ("float32", "float16", "bfloat16")
"""Element types that a workload can be asked for."""
DEVICES = ("cpu",)
"""Where a workload runs while it is recorded."""

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
    file: Path


def available() -> tuple[str, ...]:
    """Names of all workloads of this folder, sorted."""
    files = [file.stem for file in _FOLDER.glob("*.py") if not file.stem.startswith("_")]
    return tuple(sorted([*files, *VARIANTS]))


def workload_name(given: str) -> str:
    """The name of a workload given by its name or by the path of its file, which ends in ".py".

    InputError for an unknown name, and for a path that gives no name of letters and digits.
    """
    if not given.endswith(".py"):
        if given not in available():
            expected = f"one of {', '.join(available())}, or the path of a Python file"
            raise InputError(_COMMAND_LINE, "WORKLOAD", given or "nothing", expected)
        return given
    name = Path(given).stem
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
        raise InputError(_COMMAND_LINE, "WORKLOAD", given, "a file named by letters, digits, _ . -")
    return name


def load_workload(given: str) -> Workload:
    """The workload of that name, or in that file.

    Raises:
        InputError: there is none (the message lists those there are), or its file does not load.
    """
    name = workload_name(given)
    own, options = VARIANTS.get(given, (given, {}))
    file = Path(given).absolute() if given.endswith(".py") else own_file(own)
    module = module_of(file)
    told = "".join(f", {key} {value}" for key, value in options.items())
    return Workload(name, module.DESCRIPTION + told, partial(module.build, **options), file)


def capture_workload(
    given: str,
    *,
    seed: int = 0,
    checkpoint: Path | None = None,
    dtype: str | None = None,
    device: str = "cpu",
    progress: Callable[[], object] | None = None,
) -> Capsule:
    """Build a workload and capture one run of it.

    `dtype`: handed to `build` where it takes one; else the module and its floats are converted.
    `progress` is called with every op that is recorded.

    Raises:
        InputError: unknown workload, dtype or device, a checkpoint that does not fit, or whatever
            the workload's own code raises, with its file and line.
    """
    if dtype is not None and dtype not in DTYPES:
        raise InputError(_COMMAND_LINE, "DTYPE", dtype, f"one of {', '.join(DTYPES)}")
    if device not in DEVICES:
        raise InputError(_COMMAND_LINE, "DEVICE", device, f"one of {', '.join(DEVICES)}")
    workload = load_workload(given)
    from driver.capture import capture  # noqa: PLC0415 (torch takes seconds to import)
    from driver.capture.recorder import seeded  # noqa: PLC0415 (likewise)
    from workloads._weights import single_thread  # noqa: PLC0415 (likewise)

    with blamed(workload.file, "built"), seeded(seed), single_thread():
        takes = dtype is not None and "dtype" in inspect.signature(workload.build).parameters
        options = {"dtype": dtype} if takes else {}
        built = workload.build(seed, checkpoint, **options)
    module, inputs = checked(workload.file, built)
    if dtype is not None and not takes:
        with blamed(workload.file, f"converted to {dtype}"):
            module, inputs = _converted(module, inputs, dtype)
    name = workload.name if dtype is None else f"{workload.name}_{dtype}"
    with blamed(workload.file, "run"):
        return capture(module, inputs, name=name, seed=seed, progress=progress)


def _converted(module: torch.nn.Module, inputs: Inputs, dtype: str) -> tuple[Any, Any]:
    """The module and its inputs with every float of another type."""
    import torch  # noqa: PLC0415 (takes seconds)
    from torch.utils._pytree import tree_map  # noqa: PLC0415

    element = getattr(torch, dtype)

    def convert(value: Any) -> Any:
        floats = isinstance(value, torch.Tensor) and value.is_floating_point()
        return value.to(element) if floats else value

    return module.to(element), tree_map(convert, inputs)
