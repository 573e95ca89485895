# SPDX-License-Identifier: Apache-2.0
"""The tests of the UVM bench on a backend, without pins: for a simulator without VPI.

A test is the same class: its stimulus, its model and its comparisons. Registers, memory, faults,
stalls and irq are the backend's. Tests that need the host port s_axi or a memory of the bench's
own are not run here, and neither is the host's traffic beside random commands.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, ClassVar, Protocol, cast

from driver.backend import InspectableBackend
from driver.backend.queues import FIRST_QUEUE, SECOND_QUEUE
from driver.backend.rtl import RtlBackend
from driver.backend.shared_memory import FaultRange
from driver.backend.simulator import StopReason
from driver.config import HwConfig
from driver.errors import (
    InfrastructureError,
    InputError,
    RegisterError,
    SimulatorTimeout,
    VerdictError,
)
from driver.isa import DeviceState, Packet, csr
from driver.results import COCOTB_FOLDER, OpEvent, OpRow, RunResult, RunSpec
from golden.backend import CmodelBackend
from tb.agents.packet_queue import PacketQueue, Way
from tb.checks import check_row, checks_result, picked
from tb.env.comparison import DeviceComparison
from tb.env.tally import check_tally
from tb.env.verbs import RING_ENTRIES, DeviceVerbs
from tb.env.verdict import Mismatch, located
from tb.ops.runner import RunObserver
from tb.ops.stopped import RunBroken

_HOST_READS = "host reads"


class ClockedBackend(InspectableBackend, Protocol):
    """A backend with a clock and a DRAM that can hold back."""

    def run(self, cycles: int, timeout_s: float, *, until_irq: bool = False) -> StopReason:
        """See RtlBackend."""
        ...

    def set_dram(self, latency_cycles: int, stall: int = 0, seed: int = 0) -> None:
        """See RtlBackend."""
        ...


class _BackendMemory:
    """BenchMemory of a backend."""

    def __init__(self, backend: InspectableBackend) -> None:
        self._backend = backend

    def read(self, address: int, size_bytes: int) -> bytes:
        return self._backend.read_memory(address, size_bytes)

    def write(self, address: int, data: bytes) -> None:
        self._backend.write_memory(address, data)

    def dirty_pages(self) -> set[int]:
        return set(self._backend.dirty_pages())

    def set_faults(self, ranges: list[FaultRange]) -> None:
        self._backend.set_faults(ranges)


class OnBackend(DeviceVerbs):
    """Takes the place of BusTest's pins in a class that has this one first among its bases."""

    stimulus: ClassVar[Any]

    def __init__(
        self, config: HwConfig, seed: int, device: ClockedBackend, timeout_s: float
    ) -> None:
        """`device`: fresh. `timeout_s`: of one wait for an interrupt."""
        self.config, self._device, self._timeout_s = config, device, timeout_s
        self.rng = random.Random(f"{seed}/{type(self).__name__}")
        self.memory = _BackendMemory(device)
        self.model = CmodelBackend(config)
        self.lay_out()
        self._found = DeviceComparison(self.model, self.memory, self.records)
        self._queue, self._second = (
            PacketQueue(self.read, self.write, self._store, base, RING_ENTRIES, registers)
            for base, registers in (
                (self.ring_base, FIRST_QUEUE),
                (self.second_ring_base, SECOND_QUEUE),
            )
        )

    def execute(self) -> int:
        """The test from reset to verdict: how much was compared. Mismatch and the errors of
        `device` as they come; InfrastructureError for a test that needs more than this bench."""
        if getattr(self, "own_ram", False):
            raise InfrastructureError("the test needs pins: it has a memory of its own")
        latency = self.config.dram.latency_cycles
        self._device.set_dram(latency, self.dram_stall, self.rng.getrandbits(32))
        self._device.reset()
        self._device.clear_dirty()
        with located(self._found.history.progress):
            _to_its_end(self._whole())
        check_tally(self._found.compared, [k for k in self.compares if k != _HOST_READS], 0)
        return self._found.total

    async def _whole(self) -> None:
        await self.at_reset()
        await self.bring_up()
        await self.stimulus()
        await self.settle()
        self._found.compare_memory()

    @property
    def found(self) -> DeviceComparison:
        return self._found

    async def read(self, offset: int) -> int:
        with _answers(f"a read of register {offset:#05x}"):
            value = self._device.read_csr(offset)
        self._found.compare_register(offset, value)
        return value

    async def write(self, offset: int, value: int) -> None:
        with _answers(f"a write of register {offset:#05x}"):
            self._device.write_csr(offset, value)
        self.model.write_csr(offset, value)
        while (self.model.read_csr(csr.STATUS) & csr.STATUS_STATE_MASK) == DeviceState.BUSY:
            pass

    async def refused(self, offset: int) -> None:
        for access in (
            partial(self._device.read_csr, offset),
            partial(self._device.write_csr, offset, self.rng.getrandbits(32)),
        ):
            try:
                access()
            except RegisterError:
                continue
            raise Mismatch(f"register {offset:#05x}: an access was answered, expected SLVERR")

    async def _store(self, address: int, data: bytes) -> None:
        self.memory.write(address, data)
        self.model.write_memory(address, data)

    async def queue(self, packets: list[Packet], way: Way) -> None:
        self._found.history.note(packets, way)
        queue = self._second if way is Way.SECOND_RING else self._queue
        await queue.queue(packets, way)

    async def resync(self) -> None:
        await self._queue.resync()
        if self.second_in_use:
            await self._second.resync()

    async def irq_within(self, cycles: int) -> bool:
        return self._run(cycles, until_irq=True)

    async def irq_after(self, cycles: int) -> int:
        self._run(cycles)
        return int(self._run(0, until_irq=True))

    def _run(self, cycles: int, *, until_irq: bool = False) -> bool:
        """Whether irq ended it. SimulatorTimeout: neither irq nor the last cycle came."""
        stopped = self._device.run(cycles, self._timeout_s, until_irq=until_irq)
        if stopped is StopReason.WALL_CLOCK:
            what = f"not the end of {cycles} cycles and no interrupt in {self._timeout_s:g} s"
            raise SimulatorTimeout(what)
        return stopped is StopReason.IRQ

    async def host_write(self, address: int, data: bytes) -> int:
        """Refused."""
        raise InfrastructureError(f"the test needs pins: s_axi at {address:#x}")

    def beside(self, traffic: Coroutine[Any, Any, None]) -> Awaitable[None]:
        """There is no port."""
        traffic.close()
        return _Nothing()


@contextmanager
def _answers(access: str) -> Iterator[None]:
    """A legal access that the device refuses is its fault, not that of the user's input."""
    try:
        yield
    except RegisterError as error:
        raise Mismatch(f"response to {access}: got SLVERR, expected OKAY") from error


class _Nothing:
    """Has ended; need not be awaited."""

    def __await__(self) -> Generator[Any, Any, None]:
        yield from ()


def _to_its_end(test: Coroutine[Any, Any, None]) -> None:
    """Nothing in it may wait for a simulator's event."""
    try:
        test.send(None)
    except StopIteration:
        return
    test.close()
    raise InfrastructureError("the test waits for an event of cocotb: it needs pins")


def on_backend(test: type) -> type[OnBackend]:
    """The same test without pins."""
    return cast("type[OnBackend]", type(test)(test.__name__, (OnBackend, test), {}))


def run_on_backend(
    spec: RunSpec, config: HwConfig, module: ModuleType, progress: RunObserver
) -> RunResult:
    """Run the tests of `module` that need no pins, all or those that the spec picks.

    RunBroken, with the rows so far, when something around the device stops.
    """
    needs_pins = frozenset(getattr(module, "NEED_PINS", ()))
    tests = [(at, module.TESTS[at]) for at in picked(spec, len(module.TESTS))]
    left_out = [name for _, name in tests if name in needs_pins]
    tests = [(at, name) for at, name in tests if name not in needs_pins]
    if not tests:
        raise InputError("command line", "op", ", ".join(left_out), "a test that needs no pins")
    note = f"not run, they need pins: {', '.join(left_out)}" if left_out else ""
    if note:
        progress.note(note)
    progress.plan(len(tests))
    rows: list[OpRow] = []
    for index, name in tests:
        try:
            rows.append(_row(spec, config, module.MODULE, index, name))
        except InfrastructureError as error:
            broken = checks_result(spec, rows, (index, f"{name}: {error}"))
            raise RunBroken(broken, error) from error
        progress.op(OpEvent.of(rows[-1]))
    told = {"notes": (note,) if note else (), "simulator": spec.simulator}
    return checks_result(spec, rows).model_copy(update=told)


def _row(spec: RunSpec, config: HwConfig, module: str, index: int, name: str) -> OpRow:
    test = on_backend(getattr(import_module(module), name))
    log = spec.out / COCOTB_FOLDER / name / "sim.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    with RtlBackend(
        config,
        variant=spec.simulator,
        config_file=spec.config_file,
        sim_log=log,
        seed=spec.seed,
    ) as device:
        try:
            compared, failure = test(config, spec.seed, device, spec.timeout_s).execute(), None
        except (Mismatch, VerdictError) as error:
            compared, failure = 0, str(error)
    return check_row(index, name, module, compared, failure)
