# SPDX-License-Identifier: Apache-2.0
"""For every op the NPU runs, how far its answer and torch's may be from the true one.

`table.RULES` maps an op to its rule; a rule gives an Expectation per output. One file per family,
each with the derivation of its bounds. Never a loose rtol.
"""

from golden.bounds.expectation import Expectation, Rule
from golden.bounds.table import RULES

__all__ = ["RULES", "Expectation", "Rule"]
