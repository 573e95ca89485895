# SPDX-License-Identifier: Apache-2.0
"""The variables that `make` takes. One that is named like an option of a command becomes that
option (regress.make_options); the others are the commands' arguments, and Python's own."""

from __future__ import annotations

from typing import Final

ARGUMENTS: Final = ("TEST", "WORKLOAD", "CAPSULE", "ID", "TIER", "BENCH", "PYTHON")

OPTIONS: Final = (
    *("CONFIG", "SEED", "WAVES", "OUT", "BACKEND", "OP", "TIMEOUT", "MODE", "ALLOW_CPU", "ARRAY"),
    *("VARIANT", "CUSTOM_OPS", "SIM", "MUTANT", "RECORD", "FPGA"),
    *("FPU", "CHECKPOINT", "DTYPE", "DEVICE", "VECTORS", "SHARDS", "JOBS", "RESUME", "ONLY_FAILED"),
    *("DRY_RUN", "FILTER", "RESEED", "BUDGET", "SCHEDULER", "STORE", "PLAN", "GOOD", "BAD"),
)

VARIABLES: Final = (*ARGUMENTS, *OPTIONS)
