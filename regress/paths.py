# SPDX-License-Identifier: Apache-2.0
"""Where things lie in the project."""

from __future__ import annotations

from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
CONFIG_FILE: Final = ROOT / "sim_config.yaml"
OUT: Final = ROOT / "out"
BUILD: Final = ROOT / "build"
NIGHTLY: Final = OUT / "nightly"
"""Store and files of the regressions, unless the user says otherwise."""
