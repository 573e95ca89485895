# SPDX-License-Identifier: Apache-2.0
"""The register map's generated files: the same every time, and consistent with one another."""

from __future__ import annotations

import re
from pathlib import Path

from driver.isa import DeviceState, csr
from regress.gen_registers import render, write_html

ROOT = Path(__file__).parents[1]


def test_generated_files_are_committed_as_rendered() -> None:
    texts = render()
    assert len(texts) == 5
    for path, text in texts.items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path} is stale: run make gen"


def test_rendering_twice_gives_the_same_and_no_absolute_path() -> None:
    first = render()
    assert first == render()
    assert not any(str(ROOT) in text for text in first.values())


def test_registers_are_words_that_do_not_overlap() -> None:
    arrays = {"CMD_WORD": 16, "ENGINE_BUSY": 4, "ENGINE_WAIT": 4, "COMMAND_WAIT": 16}
    assert arrays == {name: len(offsets) for name, offsets in csr.ARRAYS.items()}
    assert len(csr.REGISTERS) == len(csr.OFFSETS) - len(arrays) + sum(arrays.values()) == 88
    assert all(offset % 4 == 0 and offset < 0x1_0000 for offset in csr.REGISTERS)


def test_every_counter_has_its_high_word_after_its_low_word() -> None:
    low = [name for name in csr.OFFSETS if name.endswith("_LO")]
    assert len(low) == 13
    for name in low:
        assert csr.OFFSETS[name[:-2] + "HI"] == csr.OFFSETS[name] + 4


def test_field_masks_of_a_register_do_not_overlap() -> None:
    masks = {name: getattr(csr, name) for name in vars(csr) if name.endswith("_MASK")}
    assert len(masks) > 20
    for register in csr.OFFSETS:
        seen = 0
        fields = (mask for name, mask in masks.items() if name.startswith(f"{register}_"))
        for mask in fields:
            assert mask & seen == 0, register
            seen |= mask


def test_the_header_for_benches_states_the_same() -> None:
    text = (ROOT / "rtl/csr/gen/npu_csr.h").read_text(encoding="utf-8")
    found = {name: int(value, 0) for name, value in re.findall(r"k(\w+) = (\w+);", text)}
    fields = {name: value for name, value in vars(csr).items() if name.endswith(("_MASK", "_LSB"))}
    states = {f"STATUS_STATE_{state.name}": state for state in DeviceState}
    expected = {
        "".join(part.capitalize() for part in name.split("_")): value
        for name, value in (csr.OFFSETS | fields | states).items()
    }
    assert found == expected


def test_html_reference_has_a_page_to_open(tmp_path: Path) -> None:
    write_html(tmp_path)
    assert (tmp_path / "index.html").stat().st_size > 0
