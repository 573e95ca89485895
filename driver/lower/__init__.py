# SPDX-License-Identifier: Apache-2.0
"""ATen ops to packets: `lower` and the table behind it.

Imports no torch; `golden` may not import this package.
"""

from driver.lower.registry import Arg
from driver.lower.table import LOWERINGS, lower, rules

__all__ = ["LOWERINGS", "Arg", "lower", "rules"]
