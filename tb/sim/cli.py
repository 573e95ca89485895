# SPDX-License-Identifier: Apache-2.0
"""`python -m tb.sim.build`: the build step for callers in other processes."""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from driver.config import load_config
from driver.errors import NpuError
from tb.sim.build import build
from tb.sim.spec import BUILD_ROOT, REPOSITORY, SECOND_SIMULATOR, VARIANTS, spec_for


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tb.sim.build", description=__doc__)
    parser.add_argument("--config", default="default", help="a configuration of the file")
    parser.add_argument("--sim-config", type=Path, default=REPOSITORY / "sim_config.yaml")
    parser.add_argument("--variant", default="check", help=", ".join([*VARIANTS, SECOND_SIMULATOR]))
    parser.add_argument("--build-root", type=Path, default=BUILD_ROOT)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--json", action="store_true", help="one line of JSON instead of the path")
    return parser


def main() -> int:
    """Exit status: 0, or that of the error, whose text is the last line of stderr."""
    arguments = _arguments().parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    try:
        config = load_config(arguments.sim_config, arguments.config)
        root = arguments.build_root.resolve()
        if arguments.variant == SECOND_SIMULATOR:
            from tb.cxxrtl.build import build_cxxrtl  # noqa: PLC0415 - needs another tool

            built = build_cxxrtl(config, root, arguments.jobs)
        else:
            built = build(spec_for(config, arguments.variant, root, arguments.jobs))
    except NpuError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    text = built.to_json() if arguments.json else str(built.binary)
    sys.stdout.write(f"{text}\n")
    return 0
