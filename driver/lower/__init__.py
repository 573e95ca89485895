# SPDX-License-Identifier: Apache-2.0
"""ATen ops to packets: `lower` and the table behind it. Torch-free, and unknown to golden."""

from driver.lower.operands import Alloc
from driver.lower.program import Program
from driver.lower.registry import Arg
from driver.lower.table import LOWERINGS, lower
from driver.lower.views import TensorView

__all__ = ["LOWERINGS", "Alloc", "Arg", "Program", "TensorView", "lower"]
