# SPDX-License-Identifier: Apache-2.0
"""Leaves, beside the row of a failing op, what is needed to look into it: map and operands.

Knows cases and devices' answers; the files' form is driver.evidence's and the capsule's own.
"""

from __future__ import annotations

import logging
from pathlib import Path

from driver.capture import save_capsule
from driver.capture.single import Call, single_call
from driver.errors import InputError
from driver.evidence import CAPSULE, MAP_FILE, Bits, ErrorMap, Reference, error_map, folder_of
from driver.results import OpRow, write_json
from golden.calls import answers
from golden.tensors import tensor_bits
from tb.ops.case import Case
from tb.ops.pair import PairResult

log = logging.getLogger(__name__)
MAX_CAPSULE_BYTES = 64 << 20
"""Operands beyond this are not copied: the op of the test's own capsule has them."""


def keep(out: Path, row: OpRow, case: Case, *, result: PairResult, tile_size: int) -> None:
    """Write what is known of a failing case to its folder; a full disk costs a note, no verdict."""
    folder = folder_of(out, row.index)
    try:
        if row.failure is not None and row.failure.tile is not None:
            write_json(folder / MAP_FILE, _map(row, case, result, tile_size))
        size = sum(tensor.nbytes for _, tensor in case.tensors())
        if case.result is None and size <= MAX_CAPSULE_BYTES:
            save_capsule(single_call(f"op{row.index}", [_recorded(case)]), folder / CAPSULE)
    except InputError as error:
        log.info("op %d: evidence is missing: %s", row.index, error)


def _map(row: OpRow, case: Case, result: PairResult, tile_size: int) -> ErrorMap:
    """Between the two sides that the blame is about."""
    assert row.failure is not None
    output = row.failure.output
    cmodel = result.cmodel.bits[output]
    rtl = cmodel if result.rtl is None else result.rtl.bits[output]
    truth = answers(case.call)[output]
    assert cmodel is not None
    assert rtl is not None
    assert truth is not None
    sides: dict[str, tuple[Reference, Bits, Bits]] = {
        "rtl": ("cmodel", cmodel, rtl),
        "cmodel": ("rtl", rtl, cmodel),
    }
    against, expected, actual = sides.get(row.blame, ("torch", tensor_bits(truth), cmodel))
    dtype = row.dtype.rpartition("→")[2]
    element = row.failure.element
    return error_map(expected, actual, element, dtype=dtype, against=against, tile_size=tile_size)


def _recorded(case: Case) -> Call:
    return Call(
        case.op, case.args, case.kwargs, case.module, case.source, case.weights, case.stream
    )
