# SPDX-License-Identifier: Apache-2.0
"""The tests by name: each module here has `INFO` (what it is) and a way to run it.

kind "ops":    `cases(spec, config)` yields the entries (tb.ops.case.Entry) in order.
kind "cocotb": `MODULE` and `TESTS` name the UVM tests; see tb.env.runner.
kind "unit":   the unit benches; see tb.unit.suite.
kind "program": `program(spec, config)` is a PyTorch program on device "npu"; tb.programs.runner.
kind "pytest": the Python tests with the marker of the test's name; see tb.pytest_suite.
"""

from __future__ import annotations

import pkgutil
from importlib import import_module
from types import ModuleType

from driver.errors import InputError
from driver.test_info import TestInfo


def names() -> list[str]:
    """All tests, sorted."""
    return sorted(found.name for found in pkgutil.iter_modules(__path__) if found.name[0] != "_")


def load(name: str) -> ModuleType:
    """The module of a test, or InputError with the names there are."""
    if name not in names():
        raise InputError("command line", "test", name, f"one of {', '.join(names())}")
    return import_module(f"{__name__}.{name}")


def infos() -> list[TestInfo]:
    """What each test says of itself."""
    return [load(name).INFO for name in names()]
