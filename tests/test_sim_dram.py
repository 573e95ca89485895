# SPDX-License-Identifier: Apache-2.0
"""npu_dram as an AXI4 slave, driven by cocotbext-axi and by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from sim_host import CONFIG, STANDIN, standin

from tb.sim.cocotb_run import CocotbRun, run_cocotb

TESTS = (
    "front_door_equals_back_door/stall=0",
    "front_door_equals_back_door/stall=80",
    "every_kind_of_burst_reads_the_right_lanes",
    "every_kind_of_burst_writes_its_strobes",
    "many_reads_wait_at_once",
    "bursts_of_different_ids_overtake_each_other/stall=0",
    "bursts_of_different_ids_overtake_each_other/stall=80",
    "answers_to_different_ids_overtake_each_other/stall=0",
    "answers_to_different_ids_overtake_each_other/stall=80",
    "poisoned_ranges_answer_the_chosen_error",
    "other_memory_takes_its_place",
)


@pytest.mark.parametrize("test", TESTS)
def test_dram(test: str, tmp_path: Path) -> None:
    run = CocotbRun(
        binary=standin("cocotb", "bridge"),
        module="bridge_cocotb",
        tests=(test,),
        folder=tmp_path,
        config=CONFIG,
        timeout_s=120,
        python_path=(STANDIN / "bridge",),
    )
    result = run_cocotb(run)
    assert result.failures == {}
    assert result.executed == (test,)
