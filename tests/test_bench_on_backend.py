# SPDX-License-Identifier: Apache-2.0
"""The tests of the bench without pins: on a right device, on wrong ones, and what is refused."""

from __future__ import annotations

import pytest

from driver.backend.functional import FunctionalBackend
from driver.backend.queues import FIRST_QUEUE, SECOND_QUEUE, QueueState
from driver.backend.simulator import StopReason
from driver.config import CONFIG_FILE, HwConfig, load_config
from driver.errors import InfrastructureError, RegisterError, SimulatorTimeout
from driver.isa import DeviceState, ErrorCode, Opcode, Packet, csr
from golden.backend import CmodelBackend
from tb.env.on_backend import on_backend
from tb.env.verdict import Mismatch
from tb.tests import _bus, _overlap, bus

CONFIG = load_config(CONFIG_FILE, "small")


class ModelDevice(CmodelBackend):
    """A second model with the verbs of a simulator."""

    def __init__(self, config: HwConfig) -> None:
        super().__init__(config)
        self.stall = 0

    def run(self, cycles: int, timeout_s: float, *, until_irq: bool = False) -> StopReason:
        if until_irq and cycles:
            self.wait_interrupt(timeout_s)
        high = self.read_csr(csr.IRQ_STATUS) & self.read_csr(csr.IRQ_ENABLE)
        return StopReason.IRQ if until_irq and high else StopReason.CYCLES

    def set_dram(self, latency_cycles: int, stall: int = 0, seed: int = 0) -> None:
        self.stall = stall


class WrongMemory(ModelDevice):
    """A bit of the first page that it writes is wrong."""

    def dirty_pages(self) -> list[int]:
        pages = super().dirty_pages()
        self.memory[pages[-1] - CONFIG.memory.base + 4095] ^= 1
        return pages


class WrongRegister(ModelDevice):
    """A configuration register answers with another number."""

    def read_csr(self, offset: int) -> int:
        return super().read_csr(offset) ^ (4 if offset == csr.CONFIG else 0)


class HangingDevice(ModelDevice):
    """No interrupt ever comes."""

    def run(self, cycles: int, timeout_s: float, *, until_irq: bool = False) -> StopReason:
        return StopReason.CYCLES


class SlowDevice(HangingDevice):
    """Its counter of beats goes on."""

    beats = 0

    def read_csr(self, offset: int) -> int:
        self.beats += offset == csr.READ_BEATS_LO
        return self.beats if offset == csr.READ_BEATS_LO else super().read_csr(offset)


class StuckIrq(ModelDevice):
    """irq is high although no command ends."""

    def run(self, cycles: int, timeout_s: float, *, until_irq: bool = False) -> StopReason:
        return StopReason.IRQ if until_irq else StopReason.CYCLES

    def read_csr(self, offset: int) -> int:
        found = super().read_csr(offset)
        if offset in (FIRST_QUEUE.completed, SECOND_QUEUE.completed):
            return 0
        return DeviceState.BUSY if offset == csr.STATUS else found


class ResetNeverEnds(ModelDevice):
    """CTRL.soft_reset stays set, and STATUS says busy."""

    waits = False

    def write_csr(self, offset: int, value: int) -> None:
        self.waits |= offset == csr.CTRL and bool(value & csr.CTRL_SOFT_RESET_MASK)
        super().write_csr(offset, value)

    def read_csr(self, offset: int) -> int:
        found = super().read_csr(offset)
        if self.waits and offset == csr.STATUS:
            return found & ~csr.STATUS_STATE_MASK | DeviceState.BUSY
        return csr.CTRL_SOFT_RESET_MASK if self.waits and offset == csr.CTRL else found


class RefusesRegister(ModelDevice):
    """A register that is there answers SLVERR."""

    def read_csr(self, offset: int) -> int:
        if offset == csr.CONFIG:
            raise RegisterError(offset, "a register")
        return super().read_csr(offset)


class StoppedSimulator(ModelDevice):
    """Its simulator makes no progress."""

    def run(self, cycles: int, timeout_s: float, *, until_irq: bool = False) -> StopReason:
        return StopReason.WALL_CLOCK


class SkipsBehindRefusedLoad(ModelDevice):
    """The first VECTOR behind a LOAD that was refused ends without an error, and writes nothing."""

    refused = False

    def _execute(self, packet: bytes, seq: int) -> ErrorCode:
        opcode = Packet.unpack(packet).opcode
        if opcode == Opcode.VECTOR and self.refused:
            self.refused = False
            return ErrorCode.NONE
        code = super()._execute(packet, seq)
        self.refused |= opcode == Opcode.LOAD and code == ErrorCode.BAD_IMAGE
        return code


class RecordsSuccess(ModelDevice):
    """Every record tells success."""

    def _record(self, queue: QueueState, code: ErrorCode, opcode: int) -> bool:
        return super()._record(queue, ErrorCode.NONE, opcode)


class RecordsAlways(ModelDevice):
    """There are records although they are disabled."""

    def _record(self, queue: QueueState, code: ErrorCode, opcode: int) -> bool:
        control = queue.registers.records_control
        kept = self._registers[control]
        self._registers[control] |= csr.CPL_CTRL_ENABLE_MASK
        try:
            return super()._record(queue, code, opcode)
        finally:
            self._registers[control] = kept


class EightSlots(ModelDevice):
    """Rings and records are of eight entries, whatever software asked for."""

    def _entries(self, control: int) -> int:
        return 8


class ResetKeepsPrograms(ModelDevice):
    """A software reset forgets no program."""

    def reset(self) -> None:
        FunctionalBackend.reset(self)


class ResetKeepsInterrupts(ModelDevice):
    """A software reset leaves IRQ_ENABLE as it was."""

    def reset(self) -> None:
        kept = self._registers[csr.IRQ_ENABLE]
        super().reset()
        self._registers[csr.IRQ_ENABLE] = kept


class AcknowledgesOneQueue(ModelDevice):
    """What waits in the other queue than the failed one is not dropped."""

    def _control(self, value: int) -> None:
        other = self._queues[1 - self._error_queue]
        kept = other.head
        super()._control(value)
        if value & csr.CTRL_ERROR_ACK_MASK:
            other.head = kept


WRONG = (
    (SkipsBehindRefusedLoad, _bus.MalformedImages),
    (RecordsSuccess, _bus.BusErrors),
    (RecordsSuccess, _bus.Errors),
    (RecordsAlways, _bus.Rings),
    (EightSlots, _bus.Rings),
    (ResetKeepsPrograms, _overlap.ResetForgetsPrograms),
    (ResetKeepsInterrupts, _overlap.ResetsInTheMiddle),
    (AcknowledgesOneQueue, _bus.Errors),
)
"""A device, and the test that has to see what is wrong with it."""

TESTS = [_bus.Rings, _bus.Errors, _bus.Interrupts, _bus.Stalls, _overlap.FailsInTheMiddle]


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.__name__)
def test_runs_to_its_end_and_compares(test: type) -> None:
    device = ModelDevice(CONFIG)
    assert on_backend(test)(CONFIG, 1, device, 1.0).execute() > 1000
    assert device.stall == test.dram_stall


@pytest.mark.parametrize("wrong", [WrongMemory, WrongRegister])
def test_wrong_device_is_a_mismatch(wrong: type[ModelDevice]) -> None:
    with pytest.raises(Mismatch, match=r"(memory, byte|register) .*; (\d+ commands q|before any)"):
        on_backend(_overlap.FailsInTheMiddle)(CONFIG, 1, wrong(CONFIG), 1.0).execute()


@pytest.mark.parametrize(("wrong", "test"), WRONG, ids=lambda made: made.__name__)
def test_each_wrong_device_is_seen(wrong: type[ModelDevice], test: type) -> None:
    on_backend(test)(CONFIG, 1, ModelDevice(CONFIG), 1.0).execute()
    with pytest.raises(Mismatch):
        on_backend(test)(CONFIG, 1, wrong(CONFIG), 1.0).execute()


def test_a_device_that_hangs_is_a_mismatch_that_says_how_far_it_came() -> None:
    hung = r"hung: no interrupt in 200000 cycles, \d+ of \d+ commands completed, state [A-Z]+"
    with pytest.raises(Mismatch, match=hung):
        on_backend(_overlap.FailsInTheMiddle)(CONFIG, 1, HangingDevice(CONFIG), 1.0).execute()


def test_a_device_that_goes_on_is_too_slow_and_does_not_hang() -> None:
    slow = r"too slow, for data still moves: no interrupt in 200000 cycles, \d+ of"
    with pytest.raises(Mismatch, match=slow):
        on_backend(_overlap.FailsInTheMiddle)(CONFIG, 1, SlowDevice(CONFIG), 1.0).execute()


def test_a_simulator_that_stands_still_is_no_verdict() -> None:
    with pytest.raises(SimulatorTimeout, match=r"no interrupt in 1 s"):
        on_backend(_overlap.FailsInTheMiddle)(CONFIG, 1, StoppedSimulator(CONFIG), 1.0).execute()


@pytest.mark.parametrize("name", bus.NEED_PINS)
def test_what_needs_pins_is_refused(name: str) -> None:
    with pytest.raises(InfrastructureError, match="needs pins"):
        on_backend(getattr(_bus, name))(CONFIG, 1, ModelDevice(CONFIG), 1.0).execute()


@pytest.mark.parametrize(
    ("wrong", "test", "told"),
    [
        (StuckIrq, _overlap.FailsInTheMiddle, r"hung: busy in 20000 interrupts, \d+ of \d+ comm"),
        (StuckIrq, _overlap.TwoQueues, "hung: a queue is busy in 20000 interrupts"),
        (ResetNeverEnds, _overlap.ResetsInTheMiddle, "hung: a soft reset waits in 20000 reads"),
        (RefusesRegister, _bus.Rings, "response to a read of register 0x0.*: got SLVERR"),
    ],
    ids=["irq", "irq of two queues", "reset", "register"],
)
def test_a_device_that_never_gets_there_is_a_mismatch(
    wrong: type[ModelDevice], test: type, told: str
) -> None:
    with pytest.raises(Mismatch, match=told):
        on_backend(test)(CONFIG, 1, wrong(CONFIG), 1.0).execute()
