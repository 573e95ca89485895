# SPDX-License-Identifier: Apache-2.0
"""sim_config.yaml: what it gives, and how each mistake in it is reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from driver.config import HwConfig, load_config, load_configs
from driver.errors import InputError

PROJECT_FILE = Path(__file__).parents[1] / "sim_config.yaml"
TEXT = """\
common:
  fma_latency: 4
  acc_tiles: 64
  row_tiles: 8
  weight_slots: 16
  whole_writes: false
  vector_lanes: 16
  fusion: true
  memory:
    regions:
      weights: {base: 0x0, size_bytes: 0x1000}
      activations: {base: 0x1000, size_bytes: 0x1000}
  registers: {base: 0x2000, size_bytes: 0x1_0000}
  dram:
    latency_cycles: 100
    single_port: false
  timeouts:
    wait_s: 1.5
    wait_cycles: 1_000_000
    hang_cycles: 100_000
configs:
  one: {array_size: 8, bus_bits: 128}
  two: {array_size: 16, bus_bits: 256, acc_tiles: 32}
"""


def written(tmp_path: Path, text: str | bytes) -> Path:
    path = tmp_path / "config.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_the_projects_configurations_have_the_promised_sizes() -> None:
    configs = load_configs(PROJECT_FILE)
    sizes = {name: (c.array_size, c.bus_bits, c.fma_latency) for name, c in configs.items()}
    assert sizes == {
        "default": (16, 256, 4),
        "small": (8, 128, 4),
        "large": (32, 512, 4),
        "qwen": (16, 256, 4),
        "training": (16, 256, 4),
        "lanes8": (16, 128, 4),
        "near": (8, 128, 4),
        "few_buffers": (8, 512, 1),
        "narrow_bus": (32, 128, 8),
        "single_port": (8, 128, 4),
    }
    regions = configs["default"].memory.regions
    assert (regions.weights.base, regions.weights.size_bytes) == (0, 256 << 20)
    assert (regions.activations.base, regions.activations.size_bytes) == (0x1000_0000, 256 << 20)
    registers = configs["default"].registers
    assert (registers.base, registers.size_bytes) == (0x2000_0000, 64 << 10)


def test_rtl_parameters_follow_from_the_configuration(tmp_path: Path) -> None:
    config = load_config(written(tmp_path, TEXT), "two")
    assert config.rtl_parameters() == {
        "ArraySize": 16,
        "BusBits": 256,
        "FmaLatency": 4,
        "AccTiles": 32,
        "RowTiles": 8,
        "WeightSlots": 16,
        "VectorLanes": 16,
        "WholeWrites": 0,
        "MemBase": 0,
        "MemLimit": 0x2000,
    }


def test_an_entry_overrides_common_and_the_others_keep_it(tmp_path: Path) -> None:
    configs = load_configs(written(tmp_path, TEXT))
    assert {name: config.acc_tiles for name, config in configs.items()} == {"one": 64, "two": 32}
    assert configs["one"].timeouts.wait_s == 1.5


def test_an_entry_may_state_a_part_of_keys_with_values(tmp_path: Path) -> None:
    own = "acc_tiles: 32, dram: {latency_cycles: 7}, timeouts: {wait_s: 9}}"
    path = written(tmp_path, TEXT.replace("acc_tiles: 32}", own))
    one, two = load_configs(path).values()
    assert (two.dram.latency_cycles, two.dram.single_port) == (7, one.dram.single_port)
    assert (two.timeouts.wait_s, two.timeouts.hang_cycles) == (9, one.timeouts.hang_cycles)
    path = written(tmp_path, TEXT.replace("acc_tiles: 32}", own.replace("7", "0")))
    with pytest.raises(InputError, match=r"configs\.two\.dram\.latency_cycles: got 0"):
        load_configs(path)


def test_a_configuration_cannot_be_changed() -> None:
    config = load_config(PROJECT_FILE, "small")
    with pytest.raises(ValidationError):
        config.array_size = 16  # type: ignore[misc]


def test_an_unknown_name_lists_those_that_exist(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT)
    with pytest.raises(InputError) as caught:
        load_config(path, "three")
    assert str(caught.value) == f"{path}: configs: got three, expected one of one, two"


MISTAKES = [
    # replaced, by, field, part of the message
    ("fma_latency: 4", "fma_latency: 0", "common.fma_latency", "got 0, expected"),
    ("fma_latency: 4", "fma_latency: 9", "common.fma_latency", "less than or equal to 8"),
    ("fma_latency: 4", "fma_latency: '4'", "common.fma_latency", "got '4', expected a valid int"),
    ("fma_latency: 4", "fma_latency: 4.0", "common.fma_latency", "got 4.0, expected a valid int"),
    ("fma_latency: 4", "fma_latency: yes", "common.fma_latency", "got 'yes', expected a valid int"),
    ("fma_latency: 4", "fma_latency: 010", "common.fma_latency", "got '010', expected a valid int"),
    ("fma_latency: 4", "fma_latency:", "common.fma_latency", "got None, expected a valid int"),
    ("fma_latency: 4", "fma_latency: true", "common.fma_latency", "got True, expected a valid int"),
    ("  fma_latency: 4\n", "", "configs.one.fma_latency", "got nothing, expected a value"),
    ("  fma_latency: 4\n", "  fma_latencies: 4\n", "common.fma_latencies", "an unknown key"),
    ("  weight_slots", "  lanes: 4\n  weight_slots", "common.lanes", "got an unknown key"),
    ("array_size: 8", "array_size: 12", "configs.one.array_size", "got 12, expected 8, 16 or 32"),
    ("bus_bits: 128", "bus_bits: 64", "configs.one.bus_bits", "128, 256 or 512"),
    ("vector_lanes: 16", "vector_lanes: 2", "common.vector_lanes", "got 2, expected 4, 8 or 16"),
    ("acc_tiles: 32", "acc_tiles: 33", "configs.two.acc_tiles", "got 33, expected a power of two"),
    ("acc_tiles: 32", "acc_tiles: 4", "common.row_tiles", "got 8, expected at most acc_tiles, 4"),
    ("row_tiles: 8", "row_tiles: 6", "common.row_tiles", "got 6, expected a power of two"),
    ("latency_cycles: 100", "latency_cycles: -1", "common.dram.latency_cycles", "got -1"),
    ("single_port: false", "single_port: 1", "common.dram.single_port", "a valid boolean"),
    ("single_port: false", "single_port: true", "common.whole_writes", "expected true beside dram"),
    ("wait_s: 1.5", "wait_s: 0", "common.timeouts.wait_s", "greater than 0"),
    ("wait_s: 1.5", "wait_s: .inf", "common.timeouts.wait_s", "got '.inf'"),
    ("wait_s: 1.5", "wait_s: 1e999", "common.timeouts.wait_s", "got inf"),
    ("base: 0x1000,", "base: 0x1020,", "common.memory.regions.activations.base", "multiple of 64"),
    ("base: 0x1000,", "base: 0x0fc0,", "common.memory.regions.activations.base", "got 0xfc0, "),
    ("base: 0x1000,", "base: 0x1040,", "common.memory.regions.activations.base", "0x1000, the end"),
    ("base: 0x1000,", "base: -64,", "common.memory.regions.activations.base", "got -64"),
    (
        "size_bytes: 0x1000}\n  registers",
        "size_bytes: 0xffff_ffff_ffff_ffc0}\n  registers",
        "common.memory.regions.activations.size_bytes",
        "from there",
    ),
    (
        "base: 0x2000, size_bytes: 0x1_0000}",
        "base: 0xffff_ffff_ffff_0000, size_bytes: 0x1_0000}",
        "common.registers.size_bytes",
        "got 65536, expected at most 65472 from there",
    ),
    (
        "base: 0x2000, size_bytes: 0x1_0000}",
        "base: 0x2000, size_bytes: 64}",
        "common.registers.size_bytes",
        "got 64, expected at least 4",
    ),
    ("array_size: 8", f"array_size: {10**30}", "configs.one.array_size", "a smaller number"),
    (
        "dram:\n    latency_cycles: 100\n    single_port: false",
        "dram: [1]",
        "common.dram",
        "expected keys with values",
    ),
    ("base: 0x2000,", "base: 0x1fc0,", "common.registers.base", "got 0x1fc0, expected none of"),
    (
        " weights: {base: 0x0,",
        " weights: {bas: 0x0,",
        "common.memory.regions.weights.bas",
        "unknown",
    ),
    ("configs:\n", "config:\n", "config", "expected one of common, configs"),
    ("  one: {", "  One: {", "configs.One", "expected a name"),
    ("  one: {", "  one: {name: uno, ", "configs.one.name", "got an unknown key"),
    ("  one: {array_size: 8, bus_bits: 128}", "  one: 8", "configs.one", "got 8, expected keys"),
    ("  one: {array_size: 8, bus_bits: 128}", "  one:", "configs.one", "got nothing"),
]


@pytest.mark.parametrize(("old", "new", "field", "message"), MISTAKES)
def test_a_mistake_is_one_line_with_file_field_value_and_expectation(
    tmp_path: Path, old: str, new: str, field: str, message: str
) -> None:
    assert TEXT.count(old) == 1
    path = written(tmp_path, TEXT.replace(old, new))
    with pytest.raises(InputError) as caught:
        load_configs(path)
    text = str(caught.value)
    assert text.startswith(f"{path}: {field}")
    assert message in text
    assert "\n" not in text


def test_a_mistake_in_another_configuration_is_found_too(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT.replace("bus_bits: 128", "bus_bits: 64"))
    with pytest.raises(InputError, match=r"configs\.one\.bus_bits"):
        load_config(path, "two")


@pytest.mark.parametrize("text", ["", "[1, 2]", "configs: {}", "configs:", "common: {}", "text"])
def test_a_file_without_configurations_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(InputError):
        load_configs(written(tmp_path, text))


def test_every_field_of_a_configuration_is_checked(tmp_path: Path) -> None:
    """No field may default silently: leaving out any of them is an error that names it."""
    fields = [name for name in HwConfig.model_fields if name not in ("name", "filelist")]
    assert len(fields) == 13
    for field in fields:
        lines = TEXT.splitlines()
        kept = []
        skipping = False
        for line in lines:
            indent = len(line) - len(line.lstrip())
            skipping = line.startswith(f"  {field}:") or (skipping and indent > 2)
            if not skipping:
                kept.append(line.replace(f"{field}: 8, ", "").replace(f", {field}: 128", ""))
        text = "\n".join(kept).replace("array_size: 16, bus_bits: 256, acc_tiles: 32", "")
        with pytest.raises(InputError, match=rf"configs\.one\.{field}: got nothing"):
            load_configs(written(tmp_path, text))


def test_another_design_is_found_from_where_the_configuration_is(tmp_path: Path) -> None:
    (tmp_path / "designs").mkdir()
    (tmp_path / "mine.f").write_text("npu_top.sv\n")
    own = TEXT.replace("one: {", "one: {filelist: ../mine.f, ")
    configs = load_configs(written(tmp_path / "designs", own))
    assert configs["one"].filelist == tmp_path / "mine.f"
    assert configs["two"].filelist is None


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        (TEXT.replace("one: {", "one: {filelist: mine.f, "), "configs.one.filelist", "mine.f"),
        (TEXT.replace("common:\n", "common:\n  filelist: .\n"), "common.filelist", "."),
        (
            TEXT.replace("one: {", "one: {filelist: 3, "),
            "configs.one.filelist",
            "3, expected a path",
        ),
    ],
)
def test_a_design_without_a_file_list_is_refused(
    tmp_path: Path, text: str, field: str, value: str
) -> None:
    with pytest.raises(InputError, match=rf"config\.yaml: {field}: got '?{value}"):
        load_configs(written(tmp_path, text))
