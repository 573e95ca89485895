# SPDX-License-Identifier: Apache-2.0
"""What the command line knows of a test before it runs it."""

from __future__ import annotations

from typing import Literal

from driver.frozen import Frozen
from driver.results import BackendName, Mode, Name


class TestInfo(Frozen):
    """One line of `python -m tb.run --list`."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    name: Name
    summary: str
    kind: Literal["ops", "cocotb", "unit", "pytest", "program"]
    backends: tuple[BackendName, ...]
    workloads: tuple[Name, ...] = ()
    """The capsules it wants: the command line captures them and passes them in the spec."""
    config: str = "default"
    """The configuration it runs on when none is asked for."""
    modes: tuple[Mode, ...] = ("isolated",)
    """How it runs the ops of its capsules when no mode is asked for."""
    takes_modes: bool = False
    """It also runs them in the other mode, if that is asked for."""
    checks: tuple[str, ...] = ()
    """The names of its rows, by number, where the rows are checks and always the same."""
    has_model: bool = False
    """It makes a model without a capsule, whose weights may be those of a checkpoint."""
