# SPDX-License-Identifier: Apache-2.0
"""Waves: only the cycles asked for, in a file that other programs read."""

from __future__ import annotations

import random
import re
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from sim_host import open_standin, start_copy, wave_changes

from driver.errors import InfrastructureError
from tb.sim.plan import OWN_STANDARD, compile_flags_of
from tb.sim.spec import SIM_FOLDER, variant_named
from tb.sim.toolchain import find_compiler, find_verilator

PERIOD = 2000  # time steps of 1 ps
FIRST, END = 300, 400
FST_HEADER, FST_GEOMETRY, FST_HIERARCHY_LZ4 = 0, 3, 6


def record(path: Path) -> None:
    with open_standin("waves") as backend:
        backend.record_waves(path, FIRST, END)
        start_copy(backend, 0, 0x1000_0000, 8)
        backend.run(500, 60)
        backend.stop_waves()


def test_vcd_holds_the_window_and_the_pins(tmp_path: Path) -> None:
    path = tmp_path / "waves.vcd"
    record(path)
    text = path.read_text()
    times = [int(time) for time in re.findall(r"^#(\d+)$", text, re.MULTILINE)]
    # The first rising edge, cycle 1, is half a period after time 0.
    assert len(times) == 2 * (END - FIRST)
    assert (times[0] // PERIOD, times[-1] // PERIOD) == (FIRST - 1, END - 1)
    names = set(re.findall(r"\$var \w+ +\d+ \S+ (\w+)", text))
    assert {"clk", "irq", "s_axil_awaddr", "m_axi_rdata", "busy_q"} <= names


def test_one_build_writes_the_same_waves_in_both_formats(tmp_path: Path) -> None:
    for name in ("waves.vcd", "waves.fst"):
        record(tmp_path / name)
    vcd, fst = (wave_changes(tmp_path / name) for name in ("waves.vcd", "waves.fst"))
    assert len(vcd) > 50
    assert sum(map(len, vcd.values())) > 2 * (END - FIRST)
    assert vcd == fst


@pytest.mark.parametrize(
    ("name", "said"), [("waves.vcd", "cannot write waves"), ("waves.fst", "FST_CHECK")]
)
def test_waves_that_a_full_disk_cuts_off_are_an_error(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / name).symlink_to("/dev/full")
    with pytest.raises(InfrastructureError, match=said):
        record(tmp_path / name)


def blocks(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(data):
        kind, length = struct.unpack_from(">BQ", data, at)
        yield kind, data[at + 9 : at + 1 + length]
        at += 1 + length


def lz4_block(data: bytes, size: int) -> bytes:
    """Decode the LZ4 block format, straight from its description."""
    out = bytearray()
    at = 0

    def length(start: int) -> int:
        nonlocal at
        if start == 15:
            while True:
                at += 1
                start += data[at - 1]
                if data[at - 1] != 255:
                    break
        return start

    while True:
        token = data[at]
        at += 1
        literals = length(token >> 4)
        out += data[at : at + literals]
        at += literals
        if at == len(data):
            break
        distance = int.from_bytes(data[at : at + 2], "little")
        at += 2
        for _ in range(length(token & 15) + 4):
            out.append(out[-distance])
    assert len(out) == size
    return bytes(out)


def test_fst_blocks_decode_without_any_fst_library(tmp_path: Path) -> None:
    path = tmp_path / "waves.fst"
    record(path)
    found = dict(blocks(path.read_bytes()))
    first, last = struct.unpack_from(">QQ", found[FST_HEADER])
    assert (first // PERIOD, last // PERIOD) == (FIRST - 1, END - 1)
    hierarchy = found[FST_HIERARCHY_LZ4]
    names = lz4_block(hierarchy[8:], int.from_bytes(hierarchy[:8], "big"))
    for name in (b"clk", b"irq", b"s_axil_awaddr", b"m_axi_rdata", b"busy_q"):
        assert re.search(name + rb"[\0 ]", names)
    geometry = found[FST_GEOMETRY]
    size, packed = int.from_bytes(geometry[:8], "big"), geometry[16:]
    assert len(packed if len(packed) == size else zlib.decompress(packed)) == size


PROGRAM = """
#include <cstdio>
#include <iterator>
#include <vector>
#include "lz4.h"
#include "zlib.h"
int main(int argc, char**) {
  std::vector<char> in;
  for (int byte = std::getchar(); byte != EOF; byte = std::getchar()) in.push_back(char(byte));
  const int size = int(in.size());
  std::vector<char> out(LZ4_compressBound(size) + compressBound(size));
  uLongf bytes = out.size();
  if (argc > 1) bytes = LZ4_compress_default(in.data(), out.data(), size, LZ4_compressBound(size));
  else compress2((Bytef*)out.data(), &bytes, (const Bytef*)in.data(), size, 4);
  std::fwrite(out.data(), 1, bytes, stdout);
}
"""


@pytest.fixture(scope="module")
def packer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compresses stdin with our headers, whatever the system has."""
    folder = tmp_path_factory.mktemp("packer")
    (folder / "main.cpp").write_text(PROGRAM)
    compiler = find_compiler().command[-1]
    headers = f"-I{SIM_FOLDER / 'fst'}"
    command = [compiler, OWN_STANDARD, "-Wall", "-Wextra", "-Werror", headers]
    command += ["-O1", "-g", "-fsanitize=address,undefined", "main.cpp", "-o", "packer"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "packer"


def samples() -> list[bytes]:
    rng = random.Random(0)
    texts = [b"", b"a", b"abcd" * 3, bytes(13), bytes(100_000), rng.randbytes(70_000)]
    texts += [rng.randbytes(size) * 3 for size in (1, 4, 11, 15, 16, 270, 66_000)]
    texts += [bytes(rng.choices(b"01xz", k=size)) for size in (12, 13, 64, 300, 40_000)]
    return texts


def test_replacement_of_lz4_decodes(packer: Path) -> None:
    sizes = []
    for text in samples():
        packed = subprocess.run([packer, "lz4"], input=text, capture_output=True, check=True).stdout
        assert lz4_block(packed, len(text)) == text
        sizes.append((len(text), len(packed)))
    assert dict(sizes)[100_000] < 1_000


def test_replacement_of_zlib_decodes(packer: Path) -> None:
    for text in samples():
        packed = subprocess.run([packer], input=text, capture_output=True, check=True).stdout
        assert zlib.decompress(packed) == text


@pytest.mark.parametrize("header", ["lz4.h", "zlib.h"])
def test_replacement_headers_are_searched_last(header: str) -> None:
    replacements = SIM_FOLDER / "fst"
    assert (replacements / header).is_file()
    flags = compile_flags_of(variant_named("waves"), find_verilator())
    assert flags[flags.index("-idirafter") + 1] == str(replacements)
