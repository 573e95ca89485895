# SPDX-License-Identifier: Apache-2.0
"""`python -m tb.mutants [NAME …]`: the campaign of all planted mutants, or of these.

A run that breaks is a row as well; the others go on. Exit status: 0 when each was caught and
reproduced, 1 when not, 2 for a name that does not exist, 3 when a run broke.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from driver.errors import InfrastructureError, NpuError
from tb.mutants.campaign import run_planted
from tb.mutants.table import PLANTED, planted_argument


def main(names: list[str]) -> int:
    """Print a row per mutant as it comes; the exit status."""
    chosen = names or list(PLANTED)
    right = broken = 0
    try:
        for name in chosen:
            planted_argument(name)
        with tempfile.TemporaryDirectory(prefix="npu-mutants-") as folder:
            for name in chosen:
                try:
                    found = run_planted(name, Path(folder))
                    right += found.right
                    line = found.line()
                except InfrastructureError as error:
                    broken += 1
                    line = f"{name:20} BROKE     {error}"
                sys.stdout.write(f"{line}\n")
                sys.stdout.flush()
    except NpuError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    sys.stdout.write(f"{right} of {len(chosen)} caught, blamed on the RTL and reproduced\n")
    if broken:
        return InfrastructureError.exit_code
    return 0 if right == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
