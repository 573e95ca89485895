# SPDX-License-Identifier: Apache-2.0
"""A failing op leaves a map of its wrong elements and its operands, ready to be run again."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch

from driver.backend.shared_memory import FaultRange
from driver.capture import load_capsule
from driver.capture.single import Call, single_call
from driver.config import HwConfig, load_config
from driver.errors import InputError
from driver.evidence import CAPSULE, MAP_FILE, MAX_TILES, ErrorMap, error_map, folded, folder_of
from driver.isa import ErrorCode
from driver.results import OpRow, RunSpec, read_json
from golden.backend import CmodelBackend
from regress.paths import CONFIG_FILE
from tb.ops.case import Case
from tb.ops.session import Session


def draw(expected: np.ndarray, actual: np.ndarray, element: tuple[int, ...]) -> ErrorMap:
    return error_map(expected, actual, element, dtype="fp32", against="cmodel", tile_size=8)


def test_the_map_holds_the_tile_of_the_element_and_counts_all_tiles() -> None:
    expected = np.arange(2 * 20 * 30, dtype=np.uint32).reshape(2, 20, 30)
    actual = expected.copy()
    for index in ((1, 9, 25), (1, 15, 24), (1, 0, 0), (0, 0, 0)):
        actual[index] ^= 1
    found = draw(expected, actual, (1, 9, 25))
    assert (found.differing, found.element, found.origin) == (4, (1, 9, 25), (8, 24))
    assert np.array(found.tiles).tolist() == [[1, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, 0]]
    assert np.array_equal(found.expected, expected[1, 8:16, 24:30])
    assert np.array_equal(found.actual, actual[1, 8:16, 24:30])


def test_a_large_result_shares_cells() -> None:
    expected = np.zeros((8 * MAX_TILES * 3, 9), np.uint8)
    actual = expected.copy()
    actual[-1, -1] = 1
    found = draw(expected, actual, (8 * MAX_TILES * 3 - 1, 8))
    assert found.tiles_per_cell == 3
    assert np.shape(found.tiles) == (MAX_TILES, 1)
    assert found.tiles[-1] == (1,)


@pytest.mark.parametrize(
    ("shape", "sizes"),
    [((), (1, 1, 1)), ((3,), (1, 1, 3)), ((2, 3), (1, 2, 3)), ((2, 3, 4, 5), (6, 4, 5))],
)
def test_any_result_folds_into_three_sizes(
    shape: tuple[int, ...], sizes: tuple[int, int, int]
) -> None:
    assert folded(shape) == sizes


class WrongBackend(CmodelBackend):
    """Stands in for an RTL whose second element is wrong."""

    cycle = 0

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        code = super()._execute(packet, seq)
        self.memory[int.from_bytes(packet[24:32], "little") + 4] ^= 0x40
        return code

    def last_writer(self, address: int) -> int | None:
        return 7


def spec(out: Path) -> RunSpec:
    return RunSpec(
        test="smoke", config="small", config_file=CONFIG_FILE, seed=1, backend="rtl",
        waves="none", out=out, capsules={}, op_filter=None, timeout_s=60.0,
    )  # fmt: skip


def failing_row(out: Path, monkeypatch: pytest.MonkeyPatch, case: Case) -> OpRow:
    config: HwConfig = load_config(CONFIG_FILE, "small")
    monkeypatch.setattr(Session, "_open_rtl", lambda *_: WrongBackend(config))
    row = Session(spec(out), config).run(case)
    assert isinstance(row, OpRow)
    assert row.status == "fail"
    return row


def test_a_failing_op_leaves_map_and_operands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = torch.arange(20.0).reshape(4, 5), torch.ones(3, 5).t()
    case = Case(3, "aten.mm.default", (a, b), "net:fc", source="net.py:7", weights=frozenset({1}))
    row = failing_row(tmp_path, monkeypatch, case)
    folder = folder_of(tmp_path, 3)
    found = read_json(folder / MAP_FILE, ErrorMap)
    assert row.failure is not None
    assert (found.against, found.differing, found.element) == ("cmodel", 1, (0, 0, 1))
    assert found.expected[0][1] == int(row.failure.expected_bits, 16)
    assert found.actual[0][1] == int(row.failure.actual_bits, 16) == found.expected[0][1] ^ 0x40
    capsule = load_capsule(folder / CAPSULE)
    (op,) = capsule.ops
    assert (op.op, op.module, op.source) == ("aten.mm.default", "net:fc", "net.py:7")
    left, right = (capsule.array(ref) for _, ref in list(op.refs())[:2])
    assert np.array_equal(left, a.numpy())
    assert right.strides == (4, 20)
    parameters = [storage.parameter for storage in capsule.document.storages.values()]
    assert sum(name is not None for name in parameters) == 1


def test_a_refused_command_has_operands_but_no_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_config(CONFIG_FILE, "small")
    session = Session(spec(tmp_path).model_copy(update={"backend": "cmodel"}), config)
    limits = (config.memory.base + (64 << 20), config.memory.limit)
    session.pair._cmodel.set_faults([FaultRange(*limits, True, False)])
    session.run(Case(0, "aten.mm.default", (torch.ones(2, 2), torch.ones(2, 2)), "m"))
    folder = folder_of(tmp_path, 0)
    assert sorted(path.name for path in folder.iterdir()) == [CAPSULE]


def test_a_capsule_of_several_calls_keeps_their_order_and_sources() -> None:
    calls = [
        Call("aten.mm.default", (torch.ones(n, 3), torch.ones(3, 2)), source=f"f.py:{n}")
        for n in (1, 2, 3)
    ]
    capsule = single_call("many", calls)
    assert [op.source for op in capsule.ops] == ["f.py:1", "f.py:2", "f.py:3"]
    assert all(a.index + 1 == b.index for a, b in pairwise(capsule.ops))


def test_a_linear_layer_stays_one_op() -> None:
    arguments = (torch.ones(2, 4, 3), torch.ones(5, 3), torch.ones(5))
    (op,) = single_call("linear", [Call("aten.linear.default", arguments)]).ops
    assert op.op == "aten.linear.default"
    assert op.source == "unknown:0"


@pytest.mark.parametrize(
    ("op", "shape", "said"),
    [
        ("aten.mm.default", (4, 5), "a call torch accepts"),
        ("aten.matmul.default", (3, 5), "aten.matmul.default as such"),
        ("aten.no_such.default", (3, 5), "an op of this torch"),
    ],
)
def test_a_call_that_is_no_single_op_is_refused(op: str, shape: tuple[int, int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        single_call("bad", [Call(op, (torch.ones(2, 3), torch.ones(shape)))])
