# SPDX-License-Identifier: Apache-2.0
"""Runs inside the simulator: AXI masters against npu_dram. Started by test_sim_dram.py."""

import logging
import random
from collections.abc import Iterator

import cocotb
from cocotb.handle import HierarchyObject
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge
from cocotbext.axi import AxiBus, AxiMaster, AxiRam, AxiResp

from driver.backend.shared_memory import BusError, FaultRange
from tb.sim.cocotb_run import attach_memory

BUS_BYTES = 32
FIXED, INCR, WRAP = 0, 1, 2
BASE = 0x1000


async def start(dut: HierarchyObject, stall: int = 0) -> None:
    logging.getLogger("cocotb").setLevel(logging.WARNING)
    dut.dram_stall.value = stall
    dut.rst_n.value = 0
    await ClockCycles(dut.clk, 5)
    dut.rst_n.value = 1
    await RisingEdge(dut.clk)


def master(dut: HierarchyObject) -> AxiMaster:
    return AxiMaster(AxiBus.from_prefix(dut, "s_axi"), dut.clk, dut.rst_n, False)


@cocotb.test()
@cocotb.parametrize(stall=[0, 80])
async def front_door_equals_back_door(dut: HierarchyObject, stall: int) -> None:
    """Random sizes and alignments, narrow and wide, several masters' worth outstanding."""
    memory = attach_memory()
    rng = random.Random(stall)
    await start(dut, stall)
    axi = master(dut)
    size = 8192
    model = bytearray(rng.randbytes(size))
    memory.bytes[BASE : BASE + size] = model
    compared = 0
    for _ in range(40):
        offset = rng.randrange(size)
        count = rng.randint(1, min(size - offset, 600))
        log2 = rng.randint(0, 5)
        if rng.random() < 0.5:
            data = rng.randbytes(count)
            model[offset : offset + count] = data
            await axi.write(BASE + offset, data, size=log2)
        else:
            answer = await axi.read(BASE + offset, count, size=log2)
            assert bytes(answer.data) == model[offset : offset + count]
            assert answer.resp == AxiResp.OKAY
            compared += count
    assert bytes(memory.bytes[BASE : BASE + size]) == model
    assert compared > 2000


@cocotb.test()
async def poisoned_ranges_answer_the_chosen_error(dut: HierarchyObject) -> None:
    """SLVERR and DECERR, of reads and of writes alone; nothing is written."""
    memory = attach_memory()
    await start(dut)
    axi = master(dut)
    for response in BusError:
        for write in (False, True):
            memory.bytes[BASE : BASE + 64] = 0x5A
            fault = FaultRange(BASE, BASE + 32, not write, write, response)
            memory.set_faults([fault])
            read = await axi.read(BASE, 32)
            written = await axi.write(BASE, bytes(32))
            expected = {write: AxiResp(response), not write: AxiResp.OKAY}
            assert (read.resp, written.resp) == (expected[False], expected[True])
            assert bytes(memory.bytes[BASE : BASE + 32]) == bytes([0x5A if write else 0]) * 32
            assert (await axi.read(BASE + 32, 32)).resp == AxiResp.OKAY
    memory.set_faults([])


async def read_burst(
    dut: HierarchyObject, address: int, beats: int, log2: int, burst: int
) -> list[bytes]:
    dut.s_axi_arid.value = 5
    dut.s_axi_araddr.value = address
    dut.s_axi_arlen.value = beats - 1
    dut.s_axi_arsize.value = log2
    dut.s_axi_arburst.value = burst
    dut.s_axi_arvalid.value = 1
    dut.s_axi_rready.value = 1
    await RisingEdge(dut.clk)
    dut.s_axi_arvalid.value = 0
    data: list[bytes] = []
    last = False
    while not last:
        await RisingEdge(dut.clk)
        if dut.s_axi_rvalid.value:
            assert dut.s_axi_rid.value == 5
            assert dut.s_axi_rresp.value == 0
            last = bool(dut.s_axi_rlast.value)
            data.append(int(dut.s_axi_rdata.value).to_bytes(BUS_BYTES, "little"))
    assert len(data) == beats
    return data


async def write_burst(
    dut: HierarchyObject, address: int, lanes: list[tuple[bytes, int]], log2: int, burst: int
) -> None:
    """`lanes`: (data, strobe) of each beat."""
    dut.s_axi_awid.value = 3
    dut.s_axi_awaddr.value = address
    dut.s_axi_awlen.value = len(lanes) - 1
    dut.s_axi_awsize.value = log2
    dut.s_axi_awburst.value = burst
    dut.s_axi_awvalid.value = 1
    dut.s_axi_bready.value = 1
    await RisingEdge(dut.clk)
    dut.s_axi_awvalid.value = 0
    for index, (data, strobe) in enumerate(lanes):
        dut.s_axi_wvalid.value = 1
        dut.s_axi_wdata.value = int.from_bytes(data, "little")
        dut.s_axi_wstrb.value = strobe
        dut.s_axi_wlast.value = index == len(lanes) - 1
        await RisingEdge(dut.clk)
        while not dut.s_axi_wready.value:
            await RisingEdge(dut.clk)
    dut.s_axi_wvalid.value = 0
    while not dut.s_axi_bvalid.value:
        await RisingEdge(dut.clk)
    assert dut.s_axi_bid.value == 3
    assert dut.s_axi_bresp.value == 0


def beat_addresses(address: int, beats: int, log2: int, burst: int) -> Iterator[int]:
    """AXI4 (IHI 0022), A3.4.1."""
    step = 1 << log2
    container = beats * step
    low = address // container * container
    for index in range(beats):
        if burst == FIXED:
            yield address
        elif burst == WRAP:
            yield low + (address - low + index * step) % container
        else:
            yield address if index == 0 else address // step * step + index * step


@cocotb.test()
async def every_kind_of_burst_reads_the_right_lanes(dut: HierarchyObject) -> None:
    memory = attach_memory()
    rng = random.Random(1)
    await start(dut)
    memory.bytes[BASE : BASE + 4096] = bytearray(rng.randbytes(4096))
    compared = 0
    for burst, lengths in ((INCR, (1, 3, 16)), (WRAP, (2, 4, 8, 16)), (FIXED, (1, 5))):
        for beats in lengths:
            for log2 in (0, 2, 5):
                step = 1 << log2
                address = BASE + rng.randrange(4096 // step - 2 * beats) * step
                address += rng.randrange(step) if burst == INCR else 0
                data = await read_burst(dut, address, beats, log2, burst)
                for beat, at in zip(data, beat_addresses(address, beats, log2, burst), strict=True):
                    low, lane = at // step * step, at // step * step % BUS_BYTES
                    assert beat[lane : lane + step] == bytes(memory.bytes[low : low + step])
                    compared += step
    assert compared > 1000


@cocotb.test()
async def every_kind_of_burst_writes_its_strobes(dut: HierarchyObject) -> None:
    memory = attach_memory()
    rng = random.Random(2)
    await start(dut)
    model = bytearray(rng.randbytes(4096))
    memory.bytes[BASE : BASE + 4096] = model
    for burst, lengths in ((INCR, (1, 7)), (WRAP, (4, 16)), (FIXED, (3,))):
        for beats in lengths:
            for log2 in (0, 2, 5):
                step = 1 << log2
                address = BASE + rng.randrange(4096 // step - 2 * beats) * step
                lanes = []
                for at in beat_addresses(address, beats, log2, burst):
                    lane = at % BUS_BYTES
                    strobe = rng.getrandbits(step) << lane
                    data = rng.randbytes(BUS_BYTES)
                    lanes.append((data, strobe))
                    for byte in range(step):
                        if strobe >> (lane + byte) & 1:
                            model[at - BASE + byte] = data[lane + byte]
                await write_burst(dut, address, lanes, log2, burst)
    assert bytes(memory.bytes[BASE : BASE + 4096]) == model


@cocotb.test()
async def many_reads_wait_at_once(dut: HierarchyObject) -> None:
    """128 addresses are taken in 128 cycles, and no answer comes before the latency."""
    await start(dut)
    dut.dram_latency.value = 200
    dut.s_axi_arlen.value = 0
    dut.s_axi_arsize.value = 5
    dut.s_axi_arburst.value = INCR
    dut.s_axi_araddr.value = BASE
    dut.s_axi_arvalid.value = 1
    dut.s_axi_rready.value = 1
    for cycle in range(128):
        await RisingEdge(dut.clk)
        assert dut.s_axi_arready.value == 1, cycle
        assert dut.s_axi_rvalid.value == 0
    dut.s_axi_arvalid.value = 0
    for _ in range(200 - 128):
        await RisingEdge(dut.clk)
        assert dut.s_axi_rvalid.value == 0
    for cycle in range(128):
        await RisingEdge(dut.clk)
        assert dut.s_axi_rvalid.value == 1, cycle


Beat = tuple[int, bytes]


async def beats_of(dut: HierarchyObject, ids: list[int], beats: int, stall: int) -> list[Beat]:
    """The id and data of every beat, of bursts that lie behind each other; one request a cycle."""
    await start(dut, stall)
    dut.dram_latency.value = 40
    dut.s_axi_arlen.value = beats - 1
    dut.s_axi_arsize.value = 5
    dut.s_axi_arburst.value = INCR
    dut.s_axi_rready.value = 1
    waiting = list(enumerate(ids))
    found: list[Beat] = []
    while len(found) < len(ids) * beats:
        if waiting:
            at, name = waiting[0]
            dut.s_axi_arid.value = name
            dut.s_axi_araddr.value = BASE + at * beats * BUS_BYTES
        dut.s_axi_arvalid.value = bool(waiting)
        await RisingEdge(dut.clk)
        if waiting and dut.s_axi_arready.value:
            del waiting[0]
        if dut.s_axi_rvalid.value:
            assert dut.s_axi_rresp.value == 0
            data = int(dut.s_axi_rdata.value).to_bytes(BUS_BYTES, "little")
            found.append((int(dut.s_axi_rid.value), data))
    return found


@cocotb.test()
@cocotb.parametrize(stall=[0, 80])
async def bursts_of_different_ids_overtake_each_other(dut: HierarchyObject, stall: int) -> None:
    """Only with stalls, and then between their beats as well; those of one id never do."""
    memory = attach_memory()
    ids, beats = [at % 3 for at in range(30)], 4
    size = len(ids) * beats * BUS_BYTES
    content = random.Random(4).randbytes(size)
    memory.bytes[BASE : BASE + size] = bytearray(content)
    lines = [content[at : at + BUS_BYTES] for at in range(0, size, BUS_BYTES)]
    asked = [(name, lines[at * beats + beat]) for at, name in enumerate(ids) for beat in range(4)]
    found = await beats_of(dut, ids, beats, stall)
    for name in set(ids):
        assert [one for one in found if one[0] == name] == [x for x in asked if x[0] == name]
    assert (found == asked) == (stall == 0)
    whole = [found[at : at + beats] for at in range(0, len(found), beats)]
    assert all(len({name for name, _ in one}) == 1 for one in whole) == (stall == 0)


@cocotb.test()
@cocotb.parametrize(stall=[0, 80])
async def answers_to_different_ids_overtake_each_other(dut: HierarchyObject, stall: int) -> None:
    """Only with stalls; there is one for each write."""
    await start(dut, stall)
    ids = [at % 5 for at in range(40)]
    dut.s_axi_awlen.value = 0
    dut.s_axi_awsize.value = 5
    dut.s_axi_awburst.value = INCR
    dut.s_axi_awaddr.value = BASE
    dut.s_axi_wstrb.value = 0
    dut.s_axi_wlast.value = 1
    dut.s_axi_bready.value = 1
    addresses, data, found = list(ids), len(ids), list[int]()
    while len(found) < len(ids):
        if addresses:
            dut.s_axi_awid.value = addresses[0]
        dut.s_axi_awvalid.value = bool(addresses)
        dut.s_axi_wvalid.value = data > 0
        await RisingEdge(dut.clk)
        if addresses and dut.s_axi_awready.value:
            del addresses[0]
        data -= bool(data and dut.s_axi_wready.value)
        if dut.s_axi_bvalid.value:
            assert dut.s_axi_bresp.value == 0
            found.append(int(dut.s_axi_bid.value))
    assert sorted(found) == sorted(ids)
    assert (found == ids) == (stall == 0)


@cocotb.test()
async def other_memory_takes_its_place(dut: HierarchyObject) -> None:
    memory = attach_memory()
    dut.dram_on.value = 0
    await start(dut)
    ram = AxiRam(AxiBus.from_prefix(dut, "ext_axi"), dut.clk, dut.rst_n, False, size=65536)
    axi = master(dut)
    data = random.Random(3).randbytes(777)
    await axi.write(BASE + 5, data)
    assert ram.read(BASE + 5, len(data)) == data
    assert not memory.bytes[:65536].any()
    assert (await axi.read(BASE + 5, len(data))).data == data
    await ReadOnly()
