# SPDX-License-Identifier: Apache-2.0
"""Every rule of the protocol checkers fails when it is broken, and only then; and assertions do not
slow a simulation down."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest
from sim_host import CONFIG, STANDIN, generate, standin

from driver.errors import AssertionFailed
from regress.front_ends import sampled_memories
from tb.sim.cocotb_run import CocotbRun, run_cocotb
from tb.sim.spec import HDL_FOLDER

_FAILED = re.compile(
    r"\[(\d+)\] %Error: \S+ Assertion failed in \S+\.u_(m_axi|s_axil)_checker\.(\w+)"
)
_RULE = re.compile(r"^\s*(\w+): assert|`NPU_STABLE\((\w+),", re.MULTILINE)
_NOT_DRIVEN = {"axil": {"BStable", "RStable", "BHasRequest", "RHasRequest"}}
"""Rules of the side that the stand-in is: its registers never answer."""


def rules(checker: str) -> set[str]:
    text = (HDL_FOLDER / f"npu_{checker}_checker.sv").read_text()
    return {name or macro for name, macro in _RULE.findall(text)} - {"name"}


def test_each_broken_rule_is_seen_and_no_other(tmp_path: Path) -> None:
    run = CocotbRun(
        binary=standin("cocotb", "bridge"),
        module="checker_cocotb",
        tests=("break_the_rules",),
        folder=tmp_path,
        config=CONFIG,
        timeout_s=120,
        python_path=(STANDIN / "bridge",),
        arguments=("+verilator+error+limit+100000",),
    )
    with pytest.raises(AssertionFailed):
        run_cocotb(run)
    spans: dict[str, tuple[int, int]] = json.loads((tmp_path / "spans.json").read_text())
    seen: dict[str, set[str]] = defaultdict(set)
    for time, port, rule in _FAILED.findall((tmp_path / "sim.log").read_text()):
        (name,) = (n for n, (start, end) in spans.items() if start < int(time) <= end)
        seen[name].add(rule if port == "m_axi" else f"lite {rule}")
    expected = {name: {name.split(":")[0]} for name in spans if not name.startswith("legal")}
    assert dict(seen) == expected
    broken = set().union(*expected.values())
    assert {name for name in broken if not name.startswith("lite")} == rules("axi")
    assert {name.removeprefix("lite ") for name in broken if name.startswith("lite")} == (
        rules("axil") - _NOT_DRIVEN["axil"]
    )


def test_no_assertion_asks_whether_assertions_are_on(tmp_path: Path) -> None:
    """Nothing switches them off, and the question is a call each (tb/sim/rewrite/assertions.py)."""
    written = [path.read_text() for path in generate("check", tmp_path).glob("*.cpp")]
    assert sum(text.count("Assertion failed") for text in written) > 100
    assert not [text for text in written if "assertOn" in text]


MEMORY = """
module store (input logic clk_i, input logic [3:0] at_i, input logic [7:0] data_i);
  logic [7:0] data_q [16];
  logic [7:0] read;
  assign read = data_q[at_i];
  always_ff @(posedge clk_i) data_q[at_i + 4'd1] <= data_i;
  {assertion}
endmodule
"""


@pytest.mark.parametrize(
    ("assertion", "problem"),
    [
        ("Small: assert property (@(posedge clk_i) read < 8'd200);", "store.data_q: a memory in"),
        ("always_ff @(posedge clk_i) Small: assert (read < 8'd200);", ""),
    ],
)
def test_a_memory_in_a_concurrent_assertion_is_found(
    tmp_path: Path, assertion: str, problem: str
) -> None:
    source = tmp_path / "store.sv"
    source.write_text(MEMORY.replace("{assertion}", assertion))
    found = sampled_memories(sources=[source])
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_no_assertion_of_the_npu_copies_a_memory() -> None:
    assert sampled_memories() == ""
