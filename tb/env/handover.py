# SPDX-License-Identifier: Apache-2.0
"""What a run and the UVM test in its simulator tell each other. The test imports no more of the
run than this: torch and the lowerings behind it would take most of the time of a start."""

from __future__ import annotations

SPEC_VARIABLE = "NPU_RUN_SPEC"
"""Environment variable with the path of the run's RunSpec."""
SUMMARY_FILE = "summary.json"
"""What the test compared, in the folder of its simulator."""
