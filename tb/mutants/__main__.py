# SPDX-License-Identifier: Apache-2.0
"""`python -m tb.mutants [NAME …]`: the campaign of all planted mutants, or of these.

Exit status: 0 when each was caught and reproduced, 1 when not, 2 for a name that does not exist, 3
when a run broke.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from driver.errors import NpuError
from tb.mutants.campaign import run_planted
from tb.mutants.table import PLANTED, planted_argument


def main(names: list[str]) -> int:
    """Print a row per mutant as it comes; the exit status."""
    chosen = names or list(PLANTED)
    right = 0
    try:
        for name in chosen:
            planted_argument(name)
        with tempfile.TemporaryDirectory(prefix="npu-mutants-") as folder:
            for name in chosen:
                found = run_planted(name, Path(folder))
                right += found.right
                sys.stdout.write(f"{found.line()}\n")
                sys.stdout.flush()
    except NpuError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    sys.stdout.write(f"{right} of {len(chosen)} caught, blamed on the RTL and reproduced\n")
    return 0 if right == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
