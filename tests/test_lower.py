# SPDX-License-Identifier: Apache-2.0
"""Lowered ops against numpy, exactly: small integers, every way an operand can lie in memory."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from backend_host import CONFIG, Host, executes
from lower_host import Bench, Placed

from driver.isa import DType, Opcode, flag_field
from driver.runtime.device import Device

PAIRS = [
    (DType.FP32, DType.FP32),
    (DType.FP16, DType.FP16),
    (DType.FP16, DType.FP32),
    (DType.BF16, DType.BF16),
    (DType.BF16, DType.FP32),
    (DType.INT8, DType.INT32),
]
pairs = pytest.mark.parametrize(
    ("source", "target"), PAIRS, ids=[f"{a.name}-{b.name}" for a, b in PAIRS]
)


pytestmark = executes


@pytest.fixture
def bench(host: Host, request: pytest.FixtureRequest) -> Bench:
    return Bench(Device(host.backend, CONFIG), seed=len(request.function.__name__))


def flags_of(packet_flags: int) -> frozenset[str]:
    names = ("SRC1_DESC", "SRC2_DESC", "SRC3_DESC", "DST_DESC")
    names = (*names, "TRANS_A", "TRANS_B", "ACCUMULATE")
    return frozenset(name for name in names if flag_field(packet_flags, name))


@pairs
@pytest.mark.parametrize("op", ["mm", "bmm", "addmm", "baddbmm", "linear"])
def test_random_views_give_numpys_product(
    bench: Bench, source: DType, target: DType, op: str
) -> None:
    compared = 0
    for _ in range(40):
        batch, m, k, n = (bench.rng.choice([1, 2, 3, 5, 8, 9, 17]) for _ in range(4))
        lead = (batch,) if op in ("bmm", "baddbmm") else ()
        rows = (*lead, m)
        if op == "linear":
            rows = tuple(bench.rng.choice([1, 2, 3, 5]) for _ in range(bench.rng.randrange(4)))
        x = bench.place_randomly((*rows, k), source)
        y = bench.place_randomly((n, k) if op == "linear" else (*lead, k, n), source)
        if len(rows) > 2:
            result = bench.place((*rows, n), target)
        else:
            result = bench.place_randomly((*rows, n), target, may_repeat=False)
        right = y.values.T if op == "linear" else y.values
        operands = [x, y]
        expected = x.values @ right
        if op in ("addmm", "baddbmm") or (op == "linear" and bench.rng.random() < 0.5):
            short = bench.rng.randrange(len(result.view.sizes))
            sizes = tuple(bench.rng.choice([size, 1]) for size in result.view.sizes[short:])
            addend = bench.place_randomly((n,) if op == "linear" else sizes, target)
            operands = [x, y, addend] if op == "linear" else [addend, x, y]
            expected = expected + addend.values
        bench.run(f"aten.{op}.default", operands, result)
        compared += bench.check(result, expected)
    assert compared > 500


LAYOUTS = {
    "dense": {},
    "transposed": {"order": (0, 2, 1)},
    "permuted": {"order": (1, 0, 2)},
    "sliced": {"gaps": True},
}
"""Name → how a [batch, rows, columns] tensor lies in memory."""
REPEATED = {"one batch": {"repeat": (0,)}, "one element": {"repeat": (0, 1, 2)}}


@pairs
def test_every_combination_of_operand_layouts(bench: Bench, source: DType, target: DType) -> None:
    seen: set[frozenset[str]] = set()
    compared = 0
    sources = [*LAYOUTS.values(), *REPEATED.values()]
    for a, b, c in product(sources, sources, LAYOUTS.values()):
        x = bench.place((2, 5, 3), source, **a)
        y = bench.place((2, 3, 9), source, **b)
        result = bench.place((2, 5, 9), target, **c)
        (packet,) = bench.run("aten.bmm.default", [x, y], result)
        seen.add(flags_of(packet.flags))
        compared += bench.check(result, x.values @ y.values)
    assert compared == 6 * 6 * 4 * 90
    ways = [("", "SRC1_DESC", "TRANS_A"), ("", "SRC2_DESC", "TRANS_B"), ("", "DST_DESC")]
    assert seen == {frozenset(filter(None, way)) for way in product(*ways)}


def operands(bench: Bench, *shapes: tuple[int, ...], dtype: DType = DType.FP32) -> list[Placed]:
    return [bench.place(shape, dtype) for shape in shapes]


def test_dense_operands_need_no_descriptor_and_one_packet(bench: Bench) -> None:
    x, y, result = operands(bench, (4, 5), (5, 6), (4, 6))
    (packet,) = bench.run("aten.mm.default", [x, y], result)
    assert (packet.opcode, packet.flags, packet.params[:4]) == (Opcode.MATMUL, 0, (4, 5, 6, 1))
    assert bench.check(result, x.values @ y.values) == 24


def test_a_linear_layer_reads_its_weight_in_place_and_flattens_its_rows(bench: Bench) -> None:
    x, weight, bias, result = operands(bench, (2, 3, 4, 5), (6, 5), (6,), (2, 3, 4, 6))
    (matmul,) = bench.run("aten.linear.default", [x, weight, bias], result)
    assert flags_of(matmul.flags) == {"TRANS_B", "ACCUMULATE", "SRC3_DESC"}
    assert matmul.params[:4] == (24, 5, 6, 1)
    assert bench.check(result, x.values @ weight.values.T + bias.values) == 144


def test_rows_that_do_not_flatten_are_a_window(bench: Bench) -> None:
    x = bench.place((3, 4, 5), DType.FP32, order=(1, 0, 2))
    weight, result = operands(bench, (6, 5), (3, 4, 6))
    (packet,) = bench.run("aten.linear.default", [x, weight], result)
    assert packet.params[:4] == (12, 5, 6, 1)
    assert flags_of(packet.flags) == {"SRC1_DESC", "TRANS_B"}
    assert bench.check(result, x.values @ weight.values.T) == 72


def test_rows_of_three_dimensions_are_a_window(bench: Bench) -> None:
    x = bench.place((2, 3, 4, 5), DType.FP32, order=(2, 1, 0, 3))
    weight, result = operands(bench, (6, 5), (2, 3, 4, 6))
    (matmul,) = bench.run("aten.linear.default", [x, weight], result)
    assert matmul.params[:4] == (24, 5, 6, 1)
    assert bench.check(result, x.values @ weight.values.T) == 144


def test_a_vector_is_one_row(bench: Bench) -> None:
    x, weight, result = operands(bench, (5,), (6, 5), (6,))
    bench.run("aten.linear.default", [x, weight], result)
    assert bench.check(result, x.values @ weight.values.T) == 6


def test_beta_zero_ignores_the_addend(bench: Bench) -> None:
    addend, x, y, result = operands(bench, (6,), (4, 5), (5, 6), (4, 6))
    nan = np.full(1, np.nan, np.float32)
    bench.device.write(addend.view.address, nan)
    packets = bench.run("aten.addmm.default", [addend, x, y], result, {"beta": 0, "alpha": 1})
    assert [packet.opcode for packet in packets] == [Opcode.MATMUL]
    assert bench.check(result, x.values @ y.values) == 24


def test_an_addend_that_is_the_result_is_not_copied(bench: Bench) -> None:
    x, y, result = operands(bench, (4, 5), (5, 6), (4, 6))
    expected = result.values + x.values @ y.values
    (packet,) = bench.run("aten.addmm.default", [result, x, y], result)
    assert flags_of(packet.flags) == {"ACCUMULATE"}
    assert bench.check(result, expected) == 24


def test_an_addend_is_read_where_it_lies(bench: Bench) -> None:
    addend, x, y, result = operands(bench, (4, 6), (4, 5), (5, 6), (4, 6))
    (packet,) = bench.run("aten.addmm.default", [addend, x, y], result)
    assert flags_of(packet.flags) == {"ACCUMULATE", "SRC3_DESC"}
    assert bench.check(result, addend.values + x.values @ y.values) == 24


def test_a_half_precision_sum_is_rounded_once(bench: Bench) -> None:
    """2048 + 1 + 1 is 2050 in one fp32 chain, but 2048 when each sum were rounded to fp16."""
    addend, x, y, result = operands(bench, (1,), (1, 2), (2, 1), (1, 1), dtype=DType.FP16)
    for placed, values in ((addend, [2048]), (x, [1, 1]), (y, [1, 1])):
        bench.device.write(placed.view.address, np.array(values, np.float16))
    bench.run("aten.addmm.default", [addend, x, y], result)
    assert bench.device.download(result.view.address, (1,), np.float16)[0] == 2050


def test_factors_change_places_where_rows_of_the_result_are_adjacent(bench: Bench) -> None:
    x, y = operands(bench, (4, 5), (5, 6))
    result = bench.place((4, 6), DType.FP32, order=(1, 0))
    (packet,) = bench.run("aten.mm.default", [x, y], result)
    assert flags_of(packet.flags) == {"TRANS_A", "TRANS_B"}
    assert packet.params[:4] == (6, 5, 4, 1)
    assert bench.check(result, x.values @ y.values) == 24


def test_batches_along_which_a_factor_repeats_are_rows_or_columns(bench: Bench) -> None:
    x, y, result = operands(bench, (3, 4, 5), (5, 6), (3, 4, 6))
    wide = replace(y, view=y.view.inserted(0, 3))
    (packet,) = bench.run("aten.bmm.default", [x, wide], result)
    assert packet.params[:4] == (12, 5, 6, 1)
    assert bench.check(result, x.values @ y.values) == 72
    other, product = operands(bench, (3, 5, 6), (3, 4, 6))
    row = bench.place((4, 5), DType.FP32)
    tall = replace(row, view=row.view.inserted(0, 3))
    (packet,) = bench.run("aten.bmm.default", [tall, other], product)
    assert packet.params[:4] == (4, 5, 18, 1)
    assert flags_of(packet.flags) == {"SRC2_DESC", "DST_DESC"}
    assert bench.check(product, row.values @ other.values) == 72
