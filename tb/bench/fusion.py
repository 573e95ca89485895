# SPDX-License-Identifier: Apache-2.0
"""Passes of the vector engine and bytes that they move, lowered and fused: a table. Exact."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from driver.compile import fused_program, joined, vector_traffic
from driver.config import CONFIG_FILE, HwConfig, load_config
from driver.isa import DTYPE_BYTES, DType
from driver.lower import Arg, lower
from driver.runtime import Buffer, Program, TensorView
from driver.runtime.views import dense
from tb.bench.measure import Measurement, Note

_SIZES = (512, 1024)
_PARAMETERS = 1 << 20
_ADAM: Mapping[str, Arg] = {
    **{"lr": 1e-3, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.01, "eps": 1e-8},
    **{"maximize": False, "decoupled": True},
}
_SGD: Mapping[str, Arg] = {
    **{"lr": 0.1, "momentum": 0.9, "dampening": 0.0, "weight_decay": 0.01},
    **{"nesterov": True, "maximize": False, "is_first_step": False},
}


def _tensor(dtype: DType, sizes: tuple[int, ...] = _SIZES) -> TensorView:
    return dense(Buffer(max(prod(sizes), 1) * DTYPE_BYTES[dtype]), dtype, sizes)


def _programs(hw: HwConfig, dtype: DType) -> dict[str, tuple[Program, ...]]:
    """Name of each row → its ops, which run one after the other."""
    x, y, other, between = (_tensor(dtype) for _ in range(4))
    scale, shift = (_tensor(dtype, _SIZES[1:]) for _ in range(2))
    statistics = [_tensor(DType.FP32, (_SIZES[0], 1)) for _ in range(2)]

    def op(name: str, args: tuple[Arg, ...], *results: TensorView) -> Program:
        return lower(name, args, {}, results, hw)

    norm = (x, _SIZES[1:], scale, shift, 1e-5)
    return {
        "softmax": (op("aten._softmax.default", (x, -1, False), y),),
        "layer norm": (op("aten.native_layer_norm.default", norm, y, *statistics),),
        "gelu": (op("aten.gelu.default", (x,), y),),
        "silu · mul": (
            op("aten.silu.default", (x,), between),
            op("aten.mul.Tensor", (between, other), y),
        ),
        "elu backward": (op("aten.elu_backward.default", (x, 1.0, 1.0, 1.0, False, other), y),),
        "huber loss backward": (
            op("aten.huber_loss_backward.default", (x, other, between, 0, 1.0), y),
        ),
    }


def _steps(hw: HwConfig) -> dict[str, tuple[Program, ...]]:
    p, g, m, v = (_tensor(DType.FP32, (_PARAMETERS,)) for _ in range(4))
    step = _tensor(DType.FP32, ())
    return {
        "AdamW": (lower("npu.adam_.default", (p, g, m, v, step), _ADAM, (p, m, v), hw),),
        "SGD, Nesterov": (lower("npu.sgd_momentum_.default", (p, g, m), _SGD, (p, m), hw),),
    }


def measure(rounds: int, note: Note) -> Measurement:
    """Bytes of AdamW per parameter; the notes are the table. One round: counts do not vary."""
    del rounds
    hw = load_config(CONFIG_FILE, "default")
    note(f"{'':32}{'passes':>14}{'bytes per element':>22}")
    for dtype in (DType.FP32, DType.BF16):
        for name, programs in _programs(hw, dtype).items():
            _row(note, hw, f"{name}, {dtype.name.lower()}", programs, prod(_SIZES))
    found = {
        name: _row(note, hw, f"{name}, per parameter", programs, _PARAMETERS)
        for name, programs in _steps(hw).items()
    }
    return Measurement(found["AdamW"], 0.0)


def _row(
    note: Note, hw: HwConfig, name: str, programs: tuple[Program, ...], elements: int
) -> float:
    """Print one row; bytes per element of the fused program."""
    if len(programs) == 1:
        fewer = fused_program(programs[0], hw)
    else:  # what an op leaves for the next one alone
        written = {buffer for program in programs[1:] for buffer in program.operands}
        between = [buffer for buffer in programs[0].operands if buffer in written]
        fewer = joined(name, programs, between, hw)
    before = [vector_traffic(program) for program in programs]
    after = vector_traffic(fewer)
    passes, moved = sum(one.passes for one in before), sum(one.size_bytes for one in before)
    note(
        f"{name:32}{passes:>6} → {after.passes:<5}"
        f"{moved / elements:>12.1f} → {after.size_bytes / elements:<7.1f}"
    )
    return round(after.size_bytes / elements, 1)
