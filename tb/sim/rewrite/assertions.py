# SPDX-License-Identifier: Apache-2.0
"""Takes out the question whether assertions are on, which they are whenever they are built.

Verilator asks it by a call before each assertion, about a hundred times in a cycle of a COPY, and
behind a call g++ reads again what it had in registers. Knows Verilator's C++, compiles nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

from tb.sim.rewrite.file_list import replace_text

_QUESTION = re.compile(r"vlSymsp->_vm_contextp__->assertOn(?:Get\(\d+, \d+\)|\(\))")
"""Begins with what is searched for at once: the files have tens of megabytes."""


def always_assert(generated: Path) -> int:
    """Rewrite the model in the folder; how many assertions it has."""
    return replace_text(generated.glob("*.cpp"), _QUESTION, "true")
