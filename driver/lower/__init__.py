# SPDX-License-Identifier: Apache-2.0
"""ATen ops to packets: `lower` and the table behind it. Torch-free, and unknown to golden."""

from driver.lower.registry import Arg
from driver.lower.table import LOWERINGS, lower, rules

__all__ = ["LOWERINGS", "Arg", "lower", "rules"]
