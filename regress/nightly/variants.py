# SPDX-License-Identifier: Apache-2.0
"""Which simulators of a plan are compiled with a profile: those that run longer than that takes.

A profile-guided build (a variant of tb/sim/spec.py ending in `pgo`) has the same bits and cycles.
Builds and runs nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from regress.nightly.estimate import Seconds
from regress.results.model import PlannedJob

EXTRA_S = 300.0
"""Wall-clock time of the second compilation and the training, on two cores, over a plain build."""
SAVED = 0.1
"""Part of a job's time that a profile saves: 16 to 18 % of the simulator's in vector programs and
copies, nothing in a product, and the simulator is not all of a job."""

Simulator = tuple[str, str]
"""Configuration and array model."""


def simulator_of(item: PlannedJob) -> Simulator:
    """What the item simulates: items with the same one share a build."""
    return item.config, item.array


def profiled_simulators(items: Iterable[PlannedJob], expected: Seconds) -> frozenset[Simulator]:
    """Simulators whose jobs together are expected to save more than the profile costs; `items` are
    those that run ops on RTL. A job without a record counts nothing."""
    seconds: defaultdict[Simulator, float] = defaultdict(float)
    for item in items:
        seconds[simulator_of(item)] += expected(item) or 0.0
    return frozenset(which for which, total in seconds.items() if total * SAVED > EXTRA_S)
