# SPDX-License-Identifier: Apache-2.0
"""What happens after the last job of a run: reports, notifications, ratchets.

The runner calls `after_run` and prints its lines; it knows nothing else of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from regress.nightly.store import Store


@dataclass(frozen=True)
class Aftermath:
    """What the reports have to say. `red` makes the exit status 1 even when every item passed."""

    lines: tuple[str, ...] = ()
    red: bool = False
    """A ratchet was lost, or equal inputs gave different results."""
    expected: frozenset[str] = frozenset()
    """Ids of the items whose failure is a known issue: they do not count for the exit status."""


def after_run(store: Store, plan_id: str) -> Aftermath:
    """Reports of the plan `plan_id`, which has just been run as far as it was.

    InputError and InfrastructureError are printed and leave exit status 3; results are safe by now.
    """
    from regress.aftermath import conclude, lines_of  # noqa: PLC0415 (they read what a run left)

    conclusion = conclude(store, plan_id)
    return Aftermath(lines_of(conclusion), conclusion.red, conclusion.expected)
