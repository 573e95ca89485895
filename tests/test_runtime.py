# SPDX-License-Identifier: Apache-2.0
"""Programs as data: buffers in place of addresses, relocation, lifetimes; one lock per device."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from backend_host import CONFIG

from driver.backend import open_backend
from driver.errors import DeviceFault, OutOfMemory, UnsupportedOp
from driver.isa import DTYPE_BYTES, Descriptor, DType, Opcode, Packet
from driver.lower import lower, rules
from driver.runtime import Buffer, Device, Program, TensorView, dense, loaded

FP32, INT32 = DType.FP32, DType.INT32


@pytest.fixture
def device() -> Iterator[Device]:
    with Device(open_backend("cmodel", CONFIG), CONFIG) as opened:
        yield opened


def view(*sizes: int, dtype: DType = FP32) -> TensorView:
    return dense(Buffer(DTYPE_BYTES[dtype] * max(1, int(np.prod(sizes)))), dtype, sizes)


def softmax(x: TensorView, out: TensorView) -> Program:
    return lower("aten._softmax.default", (x, -1, False), {}, (out,), CONFIG)


def test_a_program_names_operands_in_the_order_of_the_call() -> None:
    a, b, out = view(3, 4), view(4, 5), view(3, 5)
    program = lower("aten.mm.default", (a, b), {}, (out,), CONFIG)
    assert program.operands == (a.buffer, b.buffer, out.buffer)
    (packet,) = program.packets
    assert (packet.opcode, packet.src1, packet.src2, packet.dst) == (Opcode.MATMUL, 0, 0, 0)
    assert program.relocations.words.tolist() == [1, 2, 3]
    assert program.relocations.symbols.tolist() == [0, 1, 2]
    assert program.vector_programs == ()


def test_binding_adds_addresses_to_packets_and_descriptors() -> None:
    whole = view(8, 6)
    part = whole.sliced(0, 2, 3).sliced(1, 1, 4).transposed()
    out = view(4, 3)
    program = lower("aten.exp.default", (part,), {}, (out,), CONFIG)
    first, second = 0x1000_0000, 0x1200_0040
    bound = program.bind([first, second, 0x40, 0x80])
    assert [address for address, _ in bound.writes] == [0x40, 0x80]
    source, target = (Descriptor.unpack(data.tobytes()) for _, data in bound.writes)
    assert (source.base, source.sizes) == (first + 4 * (2 * 6 + 1), (4, 3))
    assert (target.base, target.strides) == (second, (3, 1))
    (packet,) = bound.packets
    assert (packet.src1, packet.dst) == (0x40, 0x80)
    assert program.vector_programs == ("exp",)


def test_the_third_source_of_a_vector_packet_is_relocated_as_well() -> None:
    condition = replace(view(64, dtype=DType.UINT8), boolean=True)
    x, y, out = view(64), view(64), view(64)
    program = lower("aten.where.self", (condition, x, y), {}, (out,), CONFIG)
    bound = program.bind([0x100, 0x5_0000_0200, 0x6_0000_0300, 0x400])
    (packet,) = bound.packets
    assert packet.params[6] | packet.params[7] << 32 == 0x6_0000_0300


def test_the_digest_knows_what_a_program_does_and_not_where() -> None:
    same = {softmax(view(4, 9), view(4, 9)).digest for _ in range(3)}
    placed = replace(view(4, 9), buffer=Buffer(144, name="x", base=0x1234_0000))
    assert same == {softmax(placed, view(4, 9)).digest}
    shared = view(4, 9)
    others = [softmax(view(4, 10), view(4, 10)), softmax(shared, shared)]
    assert len({*same, *(other.digest for other in others)}) == 3


def test_sections_know_the_packets_that_use_them() -> None:
    program = softmax(view(4, 9), view(4, 9))
    temporaries = [section for section in program.sections if section.kind == "temporary"]
    assert len(temporaries) >= 2
    last = program.packet_count - 1
    for section in program.sections:
        assert section.first is not None and section.last is not None
        assert 0 <= section.first <= section.last <= last
    assert any(section.last < last for section in temporaries if section.last is not None)
    writers = [section.first for section in temporaries]
    assert writers == sorted(writers, key=lambda first: first or 0)


def test_a_program_is_printed_with_its_buffers_and_packets() -> None:
    lines = str(softmax(view(4, 9), view(4, 9))).splitlines()
    assert lines[0].startswith("program aten._softmax.default, digest ")
    assert lines[1] == "  operand 0: 144 bytes of activations "
    assert any("temporary" in line and "packets 0 to" in line for line in lines)
    assert "VECTOR amax" in lines[-5]
    assert "operand 1+0x0" in lines[-1] or "descriptor" in lines[-1]


def test_a_program_runs_on_any_buffers(device: Device) -> None:
    program = softmax(view(4, 9), view(4, 9))
    for seed in range(3):
        values = np.random.default_rng(seed).standard_normal((4, 9), np.float32)
        x, out = device.upload(values), device.alloc(144)
        device.execute(program, [x.address, out.address])
        found = device.download(out.address, (4, 9), np.float32)
        wanted = np.exp(values) / np.exp(values).sum(-1, keepdims=True)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_sections_are_freed_after_success_fault_and_lack_of_memory(device: Device) -> None:
    def used() -> int:
        return device.memory_report()[1].used_bytes

    program = softmax(view(4, 9), view(4, 9))
    x, out = device.alloc(144), device.alloc(144)
    before = used()
    device.execute(program, [x.address, out.address])
    assert used() == before
    with pytest.raises(DeviceFault):
        device.execute(program, [x.address + 2, out.address])
    device.recover()
    assert used() == before
    large = CONFIG.memory.regions.activations.size_bytes
    rest = device.alloc(large - before - 64)
    with pytest.raises(OutOfMemory), loaded(device, program, [0, 0]):
        pass
    device.free(rest)
    assert used() == before


@pytest.fixture
def busy_switching() -> Iterator[None]:
    """Threads take turns as often as Python can: without the device's lock they meet."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("busy_switching")
def test_threads_get_their_own_results(device: Device) -> None:
    """Each thread adds its own number to its own tensor, many times, with memory of its own."""
    program = lower("aten.add.Tensor", (view(7, 5), view(7, 5)), {}, (view(7, 5),), CONFIG)
    rounds, threads = 60, 6

    def work(number: int) -> int:
        rng = random.Random(number)
        right = 0
        for turn in range(rounds):
            values = np.full((7, 5), number * 1000 + turn, np.float32)
            x, out = device.upload(values), device.alloc(140 + 64 * rng.randrange(3))
            records = device.execute(program, [x.address, x.address, out.address])
            found = device.download(out.address, (7, 5), np.float32)
            right += len(records) == 1 and bool((found == 2 * values).all())
            device.free(x)
            device.free(out)
        return right

    with ThreadPoolExecutor(threads) as pool:
        assert list(pool.map(work, range(1, threads + 1))) == [rounds] * threads


def test_a_packet_that_fails_in_one_thread_is_that_threads_error(device: Device) -> None:
    bad = Packet(Opcode.FILL, 4 << 4, dst=2, params=(1,))
    with ThreadPoolExecutor(2) as pool:
        failed = pool.submit(device.submit, [bad])
        assert isinstance(failed.exception(), DeviceFault)
        device.recover()
        assert len(pool.submit(device.submit, [Packet(Opcode.NOP)]).result()) == 1


def test_rules_are_listed_best_first_and_can_be_chosen() -> None:
    x, values, places = view(2, 40), view(2, 40), view(2, 40, dtype=DType.INT64)
    call = ("aten.sort.default", (x,), {}, (values, places), CONFIG)
    assert rules(*call) == ("ranks", "bits")
    chosen = [lower(*call, rule=name).digest for name in rules(*call)]
    assert chosen[0] == lower(*call).digest
    assert len(set(chosen)) == 2
    with pytest.raises(UnsupportedOp, match="rule: got bubbles, expected ranks, bits"):
        lower(*call, rule="bubbles")
    long = ("aten.sort.default", (view(600),), {}, (view(600), None), CONFIG)
    assert rules(*long) == ("bits",)
