# SPDX-License-Identifier: Apache-2.0
"""Makes the order of structures, which Verilator declares, a template.

Each comparison is one of tuples of all fields, and g++ instantiates them anew in every file that
includes the headers, precompiled or not: a second for each, though a model hardly ever compares
structures. A template is compiled where it is called. Knows Verilator's headers, compiles nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

from tb.sim.rewrite.file_list import replace_text

_ORDER = re.compile(r"^( *)bool operator<\(const \w+& rhs\) const", re.MULTILINE)
_TEMPLATE = r"\1template <typename T_Same>\n\1bool operator<(const T_Same& rhs) const"


def defer_orderings(generated: Path) -> int:
    """Rewrite the headers in the folder; how many structures had an order."""
    return replace_text(generated.glob("*.h"), _ORDER, _TEMPLATE)
