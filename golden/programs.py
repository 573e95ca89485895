# SPDX-License-Identifier: Apache-2.0
"""Vector programs on arrays of words, by the loops of the cmodel: no packet, no memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from driver.isa.image import pack
from driver.isa.micro import VectorProgram
from golden import _cmodel

Words = NDArray[np.uint32]


def run_words(
    program: VectorProgram, sources: Sequence[Words], imms: Sequence[int] = (), *, count: int = 0
) -> list[Words]:
    """Each result of the program on the elements of its sources, `count` of them if it has none.

    The index of an element is its place; a reduction's elements are those before it reduces.
    """
    count = len(sources[0]) if sources else count
    words = [np.ascontiguousarray(source) for source in sources]
    results = [np.empty(count, np.uint32) for _ in range(program.results)]
    _cmodel.run_program(pack(program), words, list(imms), results)
    return results
