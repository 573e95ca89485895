# SPDX-License-Identifier: Apache-2.0
"""What a survey of architectures says of each: one JSON record per line between processes."""

from __future__ import annotations

from typing import Literal

from driver.frozen import Frozen

Kind = Literal["refused", "wrong", "crash"]
"""Why an op is not on the NPU: no packets for it, another result than torch's, or an error of this
project's own."""


class Trouble(Frozen):
    """Ops of one architecture that are not on the NPU, for one reason."""

    kind: Kind
    op: str
    dtype: str
    text: str
    modules: tuple[str, ...]
    """Where, each module once."""
    count: int


class Surveyed(Frozen):
    """One architecture: its forward pass, op by op."""

    name: str
    model: str
    npu: int = 0
    """Ops that ran on the NPU's model and were judged right, reads by the host included."""
    free: int = 0
    """Views, and ops that only make room."""
    troubles: tuple[Trouble, ...] = ()
    error: str | None = None
    """Why the model could not be built or recorded."""

    def count(self, kind: Kind) -> int:
        """Ops with a trouble of that kind."""
        return sum(trouble.count for trouble in self.troubles if trouble.kind == kind)

    @property
    def ops(self) -> int:
        """All ops that compute."""
        return self.npu + sum(trouble.count for trouble in self.troubles)
