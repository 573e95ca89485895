# SPDX-License-Identifier: Apache-2.0
"""Speed of the exact cmodel against torch: fp32 1024³, one thread each."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from driver.isa import DType
from golden._cmodel import matmul
from tb.bench.measure import Measurement, Note, interleaved, timed

SIZE = 1024
_REPEATS = 4


def measure(rounds: int, note: Note) -> Measurement:
    """CPU time of torch ÷ cmodel; above 1 the cmodel is faster."""
    torch.set_num_threads(1)
    generator = np.random.default_rng(1)
    shape = (1, SIZE, SIZE)
    a, b = (generator.standard_normal(shape, dtype=np.float32) for _ in range(2))
    c = np.zeros(shape, np.float32)
    left, right, out = torch.from_numpy(a[0]), torch.from_numpy(b[0]), torch.from_numpy(c[0].copy())

    def by_torch() -> None:
        for _ in range(_REPEATS):
            torch.mm(left, right, out=out)

    def by_cmodel() -> None:
        for _ in range(_REPEATS):
            matmul(a, b, c, DType.FP32, DType.FP32, False, 1)

    value = interleaved(partial(timed, by_torch), partial(timed, by_cmodel), rounds)
    difference = float(np.max(np.abs(c[0] - out.numpy())))
    note(f"largest difference between the two {difference:.1e}")
    return value
