# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim architectures`: forward passes of transformers' models on the cmodel, op by op.

Owns the process (`python -m tb.architectures`) and the verdict; the page is architectures_page's.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from pydantic import ValidationError
from rich.console import Console

from driver.errors import InfrastructureError, InputError
from driver.files import write_text
from driver.survey import Surveyed
from regress.architectures_page import page, totals
from regress.console import print_line
from regress.paths import CONFIG_FILE, OUT, ROOT
from regress.process import execute, terminable

PAGE = ROOT / "docs" / "architectures.md"
SEED = 1
_CONFIG = "default"
_LIMIT_S = 3600.0


@dataclass(frozen=True)
class SurveyRequest:
    """What to run. No `names`: all. The defaults are what the page holds."""

    names: tuple[str, ...] = ()
    seed: int = SEED

    @property
    def recorded(self) -> bool:
        """Whether the outcome belongs into the page."""
        return self == SurveyRequest()


def run_architectures(console: Console, request: SurveyRequest) -> int:
    """Run, print a line per architecture and the totals, write the page if all were run.

    1 when an op is wrong or ends in an error of this project's own, or a model was not recorded.
    """
    from workloads._architecture_table import table  # noqa: PLC0415 (only here)

    known = table().architectures
    for name in request.names:
        if name not in known:
            raise InputError("command line", "name", name, f"one of {', '.join(known)}")
    say = partial(print_line, console)
    found = survey(request.names or tuple(known), request.seed, lambda one: say(_line(one)))
    for line in totals(found):
        say(line)
    if request.recorded:
        write_text(PAGE, page(found))
        say(f"wrote {PAGE.relative_to(ROOT)}")
    return 1 if any(one.error or one.count("wrong") or one.count("crash") for one in found) else 0


def survey(
    names: Sequence[str], seed: int, on_each: Callable[[Surveyed], None]
) -> tuple[Surveyed, ...]:
    """Survey these architectures in a process of their own.

    InfrastructureError when it ended before all were done.
    """
    out = OUT / "architectures"
    out.mkdir(parents=True, exist_ok=True)
    log = out / "survey.log"
    found: list[Surveyed] = []

    def on_line(text: str) -> None:
        try:
            found.append(Surveyed.model_validate_json(text))
        except ValidationError as error:
            raise InfrastructureError(f"the survey printed {text[:80]!r}; see {log}") from error
        on_each(found[-1])

    command = [sys.executable, "-m", "tb.architectures", str(CONFIG_FILE), _CONFIG, str(seed)]
    with terminable():
        ended = execute([*command, str(out), *names], log, _LIMIT_S, on_line)
    if len(found) != len(names):
        text = f"{ended.describe(_LIMIT_S)} after {len(found)} of {len(names)}"
        raise InfrastructureError(f"the survey of architectures {text}; see {log}")
    return tuple(found)


def _line(one: Surveyed) -> str:
    if one.error is not None:
        return f"{one.name}: not recorded, {one.error}"
    troubles = ", ".join(
        f"{one.count(kind)} {kind}" for kind in ("refused", "wrong", "crash") if one.count(kind)
    )
    return f"{one.name}: {one.npu} of {one.ops} ops" + (f", {troubles}" if troubles else "")
