# SPDX-License-Identifier: Apache-2.0
"""An op of several packets that comes out wrong: the packet that did it, and whose fault it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from driver.config import HwConfig, load_config
from driver.isa import ErrorCode, Opcode
from driver.isa.programs import LINES, PROGRAM_AT
from driver.results import OpRow, RunSpec
from golden.backend import CmodelBackend
from tb.ops.case import Case
from tb.ops.pair import DevicePair
from tb.ops.session import Session
from tb.ops.wrong_packet import first_wrong_packet

CONFIG_FILE = Path(__file__).parents[1] / "sim_config.yaml"
CONFIG: HwConfig = load_config(CONFIG_FILE, "small")


class Spoiler(CmodelBackend):
    """Spoils the second byte of what one vector program writes, or a byte of its source."""

    cycle = 0

    def __init__(self, config: HwConfig, program: str, *, offset: int = 1) -> None:
        super().__init__(config)
        self._number, self._offset = LINES[program], offset

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        code = super()._execute(packet, seq)
        opcode = int.from_bytes(packet[:4], "little")
        program = int.from_bytes(packet[32:36], "little")
        if opcode == Opcode.VECTOR and program == self._number:
            base = int.from_bytes(packet[24:32], "little")
            flags = int.from_bytes(packet[4:8], "little")
            if flags & 1 << 14:
                base = int.from_bytes(self.memory[base : base + 8].tobytes(), "little")
            self.memory[base + self._offset] ^= 0x40
        return code

    def last_writer(self, address: int) -> int | None:
        return 7


def case() -> Case:
    x = torch.randn(3, 20, generator=torch.Generator().manual_seed(1))
    return Case(2, "aten._softmax.default", (x, -1, False), "net:head")


def programs_of(made: Case) -> list[str]:
    """The vector programs that the case runs, in order."""
    pair = DevicePair(CONFIG, CmodelBackend(CONFIG), None)
    packets = pair.run(made, 1).packets
    return [PROGRAM_AT[p.params[0]].name for p in packets if p.opcode == Opcode.VECTOR]


def test_the_packet_that_goes_wrong_first_is_named_and_its_device_blamed() -> None:
    programs = programs_of(case())
    assert len(programs) >= 4
    for number, program in enumerate(programs, 1):
        if programs.index(program) != number - 1:
            continue
        pair = DevicePair(CONFIG, CmodelBackend(CONFIG), Spoiler(CONFIG, program))
        found = first_wrong_packet(pair, case(), 1)
        assert found is not None
        assert (found.number, found.count, found.blame) == (number, len(programs), "rtl")
        assert f"packet {number} of {len(programs)}, VECTOR {program}, element [" in str(found)
        assert found.element is not None
        assert found.right == found.element.cmodel == found.element.rtl ^ 0x4000


def test_a_wrong_model_is_blamed_instead() -> None:
    program = programs_of(case())[2]
    pair = DevicePair(CONFIG, Spoiler(CONFIG, program), CmodelBackend(CONFIG))
    found = first_wrong_packet(pair, case(), 1)
    assert found is not None and found.element is not None
    assert (found.blame, found.right) == ("cmodel", found.element.rtl)


def test_equal_devices_have_no_wrong_packet() -> None:
    pair = DevicePair(CONFIG, CmodelBackend(CONFIG), CmodelBackend(CONFIG))
    assert first_wrong_packet(pair, case(), 1) is None


def failing(
    out: Path, monkeypatch: pytest.MonkeyPatch, made: Case, rtl: Callable[[], CmodelBackend]
) -> OpRow:
    monkeypatch.setattr(Session, "_open_rtl", lambda *_: rtl())
    spec = RunSpec(
        test="smoke", config="small", config_file=CONFIG_FILE, seed=1, backend="rtl",
        waves="none", out=out, capsules={}, op_filter=None, timeout_s=60.0,
    )  # fmt: skip
    row = Session(spec, CONFIG).run(made)
    assert isinstance(row, OpRow)
    assert row.status == "fail"
    return row


def test_a_failing_row_says_which_packet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = programs_of(case())[0]
    row = failing(tmp_path, monkeypatch, case(), lambda: Spoiler(CONFIG, first))
    assert row.failure is not None
    assert row.blame == "rtl"
    assert f"; packet 1 of {row.packets}, VECTOR {first}, element [0, 0]" in row.failure.detail
    assert row.dtype == "fp32"
    assert row.elements_compared == 60


def test_a_result_in_strides_is_compared_where_it_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = torch.randn(4, 6, generator=torch.Generator().manual_seed(2))
    made = Case(0, "aten.exp.default", (x.t(),), "net:act")
    (program,) = programs_of(made)
    row = failing(tmp_path, monkeypatch, made, lambda: Spoiler(CONFIG, program, offset=4))
    assert row.failure is not None
    assert row.failure.element == (1, 0)  # second in memory, as torch laid the result out
    assert row.rtl_vs_cmodel_mismatches == 1
