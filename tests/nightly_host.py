# SPDX-License-Identifier: Apache-2.0
"""Nightlies of fake tests: tests/nightly_fake.py stands in for the bench, so nothing is simulated.

As a script, `nightly_host.py CONFIG FOLDER [--resume] [--only-failed]` runs the tier `t` and prints
`ack ID STATE` for each attempt once the store has acknowledged it.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nightly_fake import INFOS
from rich.console import Console

from driver.errors import NpuError
from driver.results import RunSpec
from driver.test_info import TestInfo
from regress.night_commands import write_report
from regress.nightly.request import TierRequest
from regress.nightly.run_plan import PlanContext
from regress.nightly.tier import run_tier
from regress.paths import CONFIG_FILE
from regress.results.model import Attempt, ItemResult, PlannedJob
from regress.results.store import Store

FAKE_RUNNER = (sys.executable, "-E", "-S", str(Path(__file__).parent / "nightly_fake.py"))
FAKE_TESTS = {str(info["name"]): TestInfo.model_validate(info, strict=False) for info in INFOS}
LIMITS = {"wall_s": 30, "cycles": 10**9}


def write_config(path: Path, tier: Mapping[str, Any], **section: Any) -> Path:
    """sim_config.yaml with the project's configurations and one tier `t`: test → seeds, or use."""
    uses = {
        name: {"configs": ["small"], **(use if isinstance(use, dict) else {"seeds": use})}
        for name, use in tier.items()
    }
    rows = {name: {"test": name} for name in tier}
    nightly = {"limits": LIMITS, "tests": rows, "tiers": {"t": uses}, **section}
    hardware = CONFIG_FILE.read_text(encoding="utf-8").split("\nnightly:")[0]
    path.write_text(
        hardware + "\n" + json.dumps({"nightly": nightly})[1:-1] + "\n", encoding="utf-8"
    )
    return path


def context(config: Path, runner: tuple[str, ...] = FAKE_RUNNER, **fields: Any) -> PlanContext:
    """Fake tests that need no preparation."""
    return PlanContext(config.absolute(), FAKE_TESTS, runner, **{**_FAKE, **fields})


def _no_steps(_item: object, _tests: object) -> tuple[()]:
    return ()


def spec_of(item: PlannedJob, out: Path) -> RunSpec:
    """What the bench would be asked for an item, by `context`."""
    return context(CONFIG_FILE).spec(item, {}, out)


_FAKE: dict[str, Any] = {
    "steps_of": _no_steps,
    "sources": lambda: "fake",
    "in_project": False,
}
"""No preparation; and who edits the project meanwhile changes nothing."""


def go(config: Path, folder: Path, **request: Any) -> tuple[int, str]:
    """Run the tier `t` in this process: exit status and what was printed."""
    own = request.pop("context", None) or context(config)
    text = io.StringIO()
    asked = TierRequest("t", config_file=config, folder=folder, **request)
    code = run_tier(Console(file=text, width=200), asked, write_report, own)
    return code, text.getvalue()


def item_results(folder: Path) -> list[ItemResult]:
    """Of the newest plan."""
    with Store.open(folder) as store:
        return store.item_results(store.plans(limit=1)[0].id)


def states(folder: Path) -> dict[str, str]:
    """Label → last state, of the newest plan."""
    return {
        item_result.item.label: "" if item_result.last is None else item_result.last.status.value
        for item_result in item_results(folder)
    }


class _Loud(Store):
    """Says what it has acknowledged."""

    def add_attempt(self, attempt: Attempt) -> bool:
        new = super().add_attempt(attempt)
        sys.stdout.write(f"ack {attempt.id} {attempt.status.value}\n")
        sys.stdout.flush()
        return new


def main(arguments: list[str]) -> int:
    """Exit status of the nightly."""
    config, folder = Path(arguments[0]), Path(arguments[1])
    Store.open = _Loud.open  # type: ignore[method-assign]
    asked = TierRequest(
        "t",
        resume="--resume" in arguments,
        only_failed="--only-failed" in arguments,
        config_file=config,
        folder=folder,
    )
    try:
        return run_tier(Console(file=sys.stderr, width=200), asked, write_report, context(config))
    except NpuError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
