# SPDX-License-Identifier: Apache-2.0
"""Runs a workload's own code: whatever it raises becomes one line with its file and line."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from driver.errors import InputError, NpuError
from driver.regular import check_regular

_PACKAGE = Path(__file__).parent


@contextlib.contextmanager
def blamed(file: Path, doing: str) -> Iterator[None]:
    """Turn what the code of `file` raises while `doing` into an InputError with the line in it.

    Errors of this project's own, which are one line already, pass.
    """
    try:
        yield
    except NpuError:
        raise
    except SyntaxError as error:
        if error.filename != str(file):
            raise _error(file, error, doing) from error
        raise InputError(shown(file), f"line {error.lineno}", error.msg, "Python") from error
    except (Exception, SystemExit) as error:
        raise _error(file, error, doing) from error


def _error(file: Path, error: BaseException, doing: str) -> InputError:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame.lineno for frame in frames if frame.filename == str(file)]
    place = f"line {own[-1]}" if own else "workload"
    text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if frames and not own:
        text += f" (in {Path(frames[-1].filename).name}:{frames[-1].lineno})"
    return InputError(shown(file), place, text, f"a workload that can be {doing}")


def shown(file: Path) -> str:
    """The file as a user knows it."""
    inside = file.is_relative_to(_PACKAGE)
    return str(file.relative_to(_PACKAGE.parent)) if inside else str(file)


def own_file(name: str) -> Path:
    """The file of a workload in this folder."""
    return _PACKAGE / f"{name}.py"


def module_of(file: Path) -> ModuleType:
    """The module of a workload's file, here or anywhere else; its folder's modules can be imported.

    InputError for a missing file, for one that does not load, and for one without DESCRIPTION or
    `build`.
    """
    check_regular(file, "a workload's Python file")
    with blamed(file, "loaded"):
        if file.parent == _PACKAGE:
            module = importlib.import_module(f"workloads.{file.stem}")
        else:
            module = _from_file(file)
    description, build = (getattr(module, name, None) for name in ("DESCRIPTION", "build"))
    if not isinstance(description, str):
        raise InputError(shown(file), "DESCRIPTION", _kind(description), "a text")
    if not callable(build):
        raise InputError(shown(file), "build", _kind(build), "a function build(seed, checkpoint)")
    return module


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def _from_file(file: Path) -> ModuleType:
    name = f"_workload_{file.stem}"  # its own, whatever else is called like the file
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(file.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(file.parent))
    return module


def checked(file: Path, built: object) -> tuple[Any, Any]:
    """What `build` returned: the module and its inputs. InputError when it is anything else."""
    import torch  # noqa: PLC0415 (takes seconds)

    if not (isinstance(built, tuple) and len(built) == 2):
        raise InputError(shown(file), "build", _kind(built), "(module, inputs)")
    module, inputs = built
    if not isinstance(module, torch.nn.Module):
        raise InputError(shown(file), "build", f"{_kind(module)} first", "a torch.nn.Module")
    if not isinstance(inputs, torch.Tensor | tuple | list | Mapping):
        expected = "a tensor, a tuple or a mapping of inputs"
        raise InputError(shown(file), "build", f"{_kind(inputs)} second", expected)
    return module, inputs
