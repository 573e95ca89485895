# SPDX-License-Identifier: Apache-2.0
"""Cycles per second of the build that every run uses (`check`, with assertions and random state)
÷ those of the build without them (`fast`): the lowest of a product, a vector program and a COPY."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from driver.isa import DType, Opcode, Packet
from driver.isa.codec import flag_word
from driver.isa.programs import LINES
from tb.bench.device import DeviceBench, rtl_bench, square_matmul
from tb.bench.measure import Measurement, Note, interleaved, timed

_PRODUCT = 256
_ELEMENTS = 1 << 18
_COPY_WORDS = 1 << 20


def _tanh(bench: DeviceBench) -> Packet:
    data = np.random.default_rng(1).standard_normal(_ELEMENTS, dtype=np.float32)
    source, target = bench.device.upload(data), bench.device.alloc(data.nbytes)
    flags = flag_word(DType.FP32, DType.FP32)
    return Packet(
        Opcode.VECTOR,
        flags,
        source.address,
        0,
        target.address,
        (LINES["tanh"], data.size),
    )


def _copy(bench: DeviceBench) -> Packet:
    data = np.arange(_COPY_WORDS, dtype=np.int32)
    source, target = bench.device.upload(data), bench.device.alloc(data.nbytes)
    flags = flag_word(DType.INT32, DType.INT32)
    return Packet(Opcode.COPY, flags, source.address, 0, target.address, (data.size,))


WORK: dict[str, Callable[[DeviceBench], Packet]] = {
    "product": lambda bench: square_matmul(bench, _PRODUCT),
    "vector": _tanh,
    "copy": _copy,
}
"""One command each, long enough that starting it does not count."""


def measure(rounds: int, note: Note, config_name: str = "default") -> Measurement:
    """CPU time of `fast` ÷ that of `check`, for each kind of work; the cycles are the same."""
    found: list[Measurement] = []
    with rtl_bench("fast", config_name) as fast, rtl_bench("check", config_name) as check:
        for name, packet_of in WORK.items():
            packets = [packet_of(bench) for bench in (fast, check)]
            cycles = fast.run(packets[0]).busy_cycles
            assert check.run(packets[1]).busy_cycles == cycles
            sides = [
                partial(timed, partial(bench.run, packet), bench.cpu_seconds)
                for bench, packet in zip((fast, check), packets, strict=True)
            ]
            found.append(interleaved(sides[0], sides[1], rounds))
            speed = cycles / sides[1]() / 1000
            note(
                f"{name}: {found[-1].value:.2f} ± {found[-1].spread / 2:.2f}, {speed:.0f} kcycles/s"
            )
    return min(found, key=lambda value: value.value)
