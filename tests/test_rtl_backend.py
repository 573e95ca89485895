# SPDX-License-Identifier: Apache-2.0
"""The RTL backend on a stand-in device: memory, time, faults of the bus, power-up state."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sim_host import (
    BUS_BYTES,
    BUSY,
    CONFIG,
    CYCLES,
    ERRORS,
    ID,
    UNSET,
    open_standin,
    random_bytes,
    start_copy,
)

from driver.backend.rtl import RtlBackend
from driver.backend.shared_memory import PAGE_BYTES, FaultRange, SharedMemory
from driver.backend.simulator import StopReason
from driver.errors import AddressError, InfrastructureError, RegisterError, SimulatorTimeout

SOURCE, TARGET = 0x10_0000, 0x1000_0000
BEATS = 16
LATENCY = CONFIG.dram.latency_cycles
WRITE_LATENCY = 8  # npu_dram's parameter


@pytest.fixture(scope="module")
def opened() -> Iterator[RtlBackend]:
    with open_standin() as backend:
        yield backend


@pytest.fixture
def backend(opened: RtlBackend) -> RtlBackend:
    opened.set_faults([])
    opened.set_dram(LATENCY)
    opened.reset()
    opened.clear_dirty()
    return opened


def copy(backend: RtlBackend, bursts: int, seed: int = 0) -> int:
    """Copy random data, check it, and return how many cycles the device was busy."""
    data = random_bytes(bursts * BEATS * BUS_BYTES, seed)
    backend.write_memory(SOURCE, data.tobytes())
    start_copy(backend, SOURCE, TARGET, bursts, BEATS)
    assert backend.wait_interrupt(60) == 1
    offset = TARGET - CONFIG.memory.base
    assert np.array_equal(backend.memory[offset : offset + len(data)], data)
    assert backend.read_memory(TARGET, len(data)) == data.tobytes()
    return backend.read_csr(BUSY)


def test_registers_answer_and_time_passes_only_when_asked(backend: RtlBackend) -> None:
    assert backend.read_csr(ID) == 0x4E50_5530
    before = backend.cycle
    assert backend.cycle == before
    first = backend.read_csr(CYCLES)
    assert backend.run(1000, 10) is StopReason.CYCLES
    between = backend.cycle
    assert backend.read_csr(CYCLES) - first == 1000 + backend.cycle - between


def test_reads_wait_the_latency_and_then_stream_one_beat_per_cycle(backend: RtlBackend) -> None:
    for latency in (2, 20, 100, 300):
        backend.set_dram(latency)
        # The first read's latency and the last write's; all between is hidden.
        assert copy(backend, 64) == 64 * BEATS + latency + WRITE_LATENCY


def test_stalls_cost_cycles_but_no_bits_and_follow_the_seed(backend: RtlBackend) -> None:
    def stalled(seed: int) -> int:
        backend.set_dram(LATENCY, stall=64, seed=seed)
        backend.reset()
        return copy(backend, 32, seed)

    unstalled = copy(backend, 32)
    cycles = [stalled(seed) for seed in (1, 2, 3)]
    assert min(cycles) > unstalled + 32 * BEATS // 4
    assert len(set(cycles)) == 3
    assert stalled(2) == cycles[1]


def test_dirty_pages_are_those_the_device_wrote(backend: RtlBackend) -> None:
    backend.write_memory(SOURCE, bytes(PAGE_BYTES))
    assert backend.dirty_pages() == []
    copy(backend, 16)
    pages = 16 * BEATS * BUS_BYTES // PAGE_BYTES
    assert backend.dirty_pages() == [TARGET + page * PAGE_BYTES for page in range(pages)]
    backend.clear_dirty()
    assert backend.dirty_pages() == []


def test_write_log_names_the_cycle_of_each_byte(backend: RtlBackend) -> None:
    start = backend.cycle
    copy(backend, 4)
    count = 4 * BEATS
    log = backend.shared.writes()[-count:]
    assert list(log["address"]) == [TARGET + beat * BUS_BYTES for beat in range(count)]
    assert np.all(np.diff(log["cycle"].astype(np.int64)) == 1)
    assert log["cycle"][0] > start + LATENCY
    for beat in (0, 1, count - 1):
        for byte in (0, BUS_BYTES - 1):
            assert backend.last_writer(TARGET + beat * BUS_BYTES + byte) == log["cycle"][beat]
    assert backend.last_writer(TARGET - 1) is None
    assert backend.last_writer(SOURCE) is None
    copy(backend, 1)
    assert backend.last_writer(TARGET) > log["cycle"][-1]


def test_fault_ranges_answer_with_a_bus_error_beat_by_beat(backend: RtlBackend) -> None:
    def errors(ranges: list[FaultRange]) -> tuple[int, int]:
        backend.reset()
        backend.set_faults(ranges)
        start_copy(backend, SOURCE, TARGET, 4, BEATS)
        backend.wait_interrupt(60)
        counts = backend.read_csr(ERRORS)
        return counts & 0xFFFF, counts >> 16

    burst = BEATS * BUS_BYTES
    assert errors([]) == (0, 0)
    assert errors([FaultRange(SOURCE + 5 * BUS_BYTES + 3, SOURCE + 5 * BUS_BYTES + 4)]) == (1, 0)
    assert errors([FaultRange(SOURCE, SOURCE + burst)]) == (BEATS, 0)
    assert errors([FaultRange(TARGET, TARGET + burst + 1)]) == (0, 2)
    assert errors([FaultRange(TARGET, TARGET + burst, on_write=False)]) == (0, 0)
    assert errors([FaultRange(SOURCE, SOURCE + burst, on_read=False)]) == (0, 0)


def test_poisoned_writes_do_not_reach_memory(backend: RtlBackend) -> None:
    backend.write_memory(TARGET, b"\xaa" * BUS_BYTES * 2)
    backend.write_memory(SOURCE, b"\x55" * BUS_BYTES * 2)
    backend.set_faults([FaultRange(TARGET, TARGET + 1)])
    start_copy(backend, SOURCE, TARGET, 1, 2)
    backend.wait_interrupt(60)
    expected = b"\xaa" * BUS_BYTES + b"\x55" * BUS_BYTES
    assert backend.read_memory(TARGET, 2 * BUS_BYTES) == expected


def test_more_fault_ranges_than_slots_are_refused(backend: RtlBackend) -> None:
    with pytest.raises(AddressError, match="at most 16"):
        backend.set_faults([FaultRange(0, 1)] * 17)


def test_device_addresses_beyond_the_window_are_bus_errors(backend: RtlBackend) -> None:
    start_copy(backend, CONFIG.memory.limit, TARGET, 1, 2)
    backend.wait_interrupt(60)
    assert backend.read_csr(ERRORS) == 2


def test_host_addresses_beyond_the_window_are_refused(backend: RtlBackend) -> None:
    limit = CONFIG.memory.limit
    assert backend.read_memory(limit - 1, 1) == b"\0"
    for address, size in ((limit, 1), (limit - 1, 2), (-1, 1)):
        with pytest.raises(AddressError):
            backend.read_memory(address, size)
        with pytest.raises(AddressError):
            backend.write_memory(address, bytes(size))


def test_register_offsets_and_values_are_checked(backend: RtlBackend) -> None:
    for offset in (-4, 2, CONFIG.registers.size_bytes):
        with pytest.raises(RegisterError):
            backend.read_csr(offset)
    with pytest.raises(RegisterError, match="32 bits"):
        backend.write_csr(0x34, 1 << 32)


def test_wait_ends_at_the_cycle_limit() -> None:
    timeouts = CONFIG.timeouts.model_copy(update={"wait_cycles": 5_000})
    config = CONFIG.model_copy(update={"timeouts": timeouts})
    with open_standin(config=config) as backend:
        with pytest.raises(
            SimulatorTimeout, match=r"after 5000 cycles: stopped by its cycle limit"
        ):
            backend.wait_interrupt(60)
        assert backend.read_csr(ID) == 0x4E50_5530


def test_wait_ends_at_the_wall_clock_limit(backend: RtlBackend) -> None:
    with pytest.raises(SimulatorTimeout, match=r"stopped by 0 s"):
        backend.wait_interrupt(0)
    assert backend.read_csr(ID) == 0x4E50_5530


def test_threads_take_turns(backend: RtlBackend) -> None:
    wrong: list[int] = []

    def read() -> None:
        wrong.extend(value for _ in range(200) if (value := backend.read_csr(ID)) != 0x4E50_5530)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_power_up_state_follows_the_seed_in_a_checking_build() -> None:
    def state(seed: int) -> int:
        with open_standin("check", seed=seed) as backend:
            return backend.read_csr(UNSET)

    states = [state(seed) for seed in (0, 1, 2)]
    assert len(set(states)) == 3
    assert state(1) == states[1]


def test_builds_with_and_without_checks_take_the_same_cycles(backend: RtlBackend) -> None:
    with open_standin("check") as checking:
        assert copy(checking, 8) == copy(backend, 8)


def test_last_writer_forgets_what_left_the_log() -> None:
    descriptor = SharedMemory.create(0, PAGE_BYTES, log_entries=4)
    memory = SharedMemory(descriptor)
    for cycle in range(6):
        memory._log[cycle % 4] = (cycle, 64 * cycle, 0b100)
    memory._header["log_count"] = 6
    assert list(memory.writes()["cycle"]) == [2, 3, 4, 5]
    assert memory.last_writer(64 * 5 + 2) == 5
    assert memory.last_writer(64 * 5 + 1) is None
    assert memory.last_writer(64 * 1 + 2) is None


def test_a_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "memory"
    path.write_bytes(bytes(2 * PAGE_BYTES))
    with path.open("r+b") as file, pytest.raises(InfrastructureError, match="unknown layout"):
        SharedMemory(file.fileno())


def test_close_may_be_called_twice_and_removes_its_log() -> None:
    backend = open_standin()
    log = backend.simulator.log
    assert log.exists()
    backend.close()
    backend.close()
    assert not log.exists()


def test_configuration_decides_the_memory() -> None:
    regions = CONFIG.memory.regions
    weights = replace_base(regions.weights, 0x4000_0000)
    activations = replace_base(regions.activations, 0x5000_0000)
    memory = CONFIG.memory.model_copy(
        update={
            "regions": regions.model_copy(update={"weights": weights, "activations": activations})
        }
    )
    with open_standin(config=CONFIG.model_copy(update={"memory": memory})) as backend:
        data = random_bytes(BUS_BYTES * BEATS)
        backend.write_memory(0x4000_0000, data.tobytes())
        start_copy(backend, 0x4000_0000, 0x5000_0000, 1, BEATS)
        backend.wait_interrupt(60)
        assert backend.read_memory(0x5000_0000, len(data)) == data.tobytes()
        assert backend.dirty_pages() == [0x5000_0000]


def replace_base(region: object, base: int) -> object:
    return region.model_copy(update={"base": base})  # type: ignore[attr-defined]
