# SPDX-License-Identifier: Apache-2.0
"""Wrong lines in what the host sees: registers, interrupts, counters, its port to the memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tb.mutants.expression import Mutant
from tb.mutants.planted import PlantedMutant
from tb.mutants.runs import (
    COUNTERS,
    EMPTIED,
    ERRORS,
    FRONT_DOOR,
    INTERRUPTS,
    RANDOM,
    RANDOM_STALLS,
    REGISTER_ACCESS,
    RESETS,
)

_BUS: Final = "registers"
_IRQ: Final = "interrupts"
_COUNTS: Final = "counters and records"
_HOST: Final = "host port"

REGISTERS: Final[Mapping[str, PlantedMutant]] = {
    # what answers, and with what
    "register-gap": PlantedMutant(
        _BUS, REGISTER_ACCESS, Mutant("npu_csr.sv", "readback_err = «decoded_err»;", "1'b0")
    ),
    "register-write-gap": PlantedMutant(
        _BUS, REGISTER_ACCESS, Mutant("npu_csr.sv", "assign cpuif_wr_err = «decoded_err»;", "1'b0")
    ),
    "register-refused": PlantedMutant(
        _BUS,
        REGISTER_ACCESS,
        Mutant(
            "npu_csr.sv",
            "decoded_err = «~is_valid_addr & decoded_req»;",
            "decoded_req & (~is_valid_addr | cpuif_addr == 16'h19c)",
        ),
    ),
    "register-reset": PlantedMutant(
        _BUS,
        REGISTER_ACCESS,
        Mutant("npu_csr_wrap.sv", "lines.next  = «16'(PROGRAM_RAM_LINES)»;", "16'd0"),
    ),
    "register-tail": PlantedMutant(
        _BUS, RANDOM, Mutant("npu_ring_fetch.sv", "= «tail_i & mask»;", "tail_i")
    ),
    # a ring that is disabled counts as waiting, runs, or is not dropped
    "ring-waits": PlantedMutant(
        _BUS,
        ERRORS,
        Mutant("npu_ring_fetch.sv", "= («ring_i.enable» && !empty_o) ||", "1'b1"),
    ),
    "ring-runs": PlantedMutant(
        _BUS, ERRORS, Mutant("npu_ring_fetch.sv", "req_valid_o    = «ring_i.enable» &&", "1'b1")
    ),
    "ring-dropped": PlantedMutant(
        _BUS, ERRORS, Mutant("npu_ctrl.sv", "queue1_on = !core_rst_n || «flush» ||", "1'b0")
    ),
    # a software reset lets others start, or does not wait for what runs
    "reset-starts": PlantedMutant(
        _BUS, RESETS, Mutant("npu_recovery.sv", "hold_o      = «soft_reset_i» ||", "1'b0")
    ),
    "reset-early": PlantedMutant(
        _BUS, RESETS, Mutant("npu_recovery.sv", "quiet       = «exec_idle_i» &&", "1'b1")
    ),
    # causes of an interrupt, and the pin
    "interrupt-queue": PlantedMutant(
        _IRQ,
        INTERRUPTS,
        Mutant(
            "npu_csr_wrap.sv", "empty1.hwset    = «irq_events_i.empty[1]»;", "irq_events_i.empty[0]"
        ),
    ),
    "interrupt-enable": PlantedMutant(
        _IRQ,
        INTERRUPTS,
        Mutant(
            "npu_csr_wrap.sv",
            "IRQ_STATUS.empty1.value && «hwif_out.IRQ_ENABLE.empty1.value»",
            "hwif_out.IRQ_ENABLE.complete1.value",
        ),
    ),
    "interrupt-cleared": PlantedMutant(
        _IRQ,
        INTERRUPTS,
        Mutant(
            "npu_csr_wrap.sv",
            "complete1.hwset = «irq_events_i.complete[1]»;",
            "irq_events_i.complete[1] && !hwif_out.IRQ_STATUS.empty1.value",
        ),
    ),
    "interrupt-aside": PlantedMutant(
        _IRQ,
        EMPTIED,
        Mutant(
            "npu_cmd_front.sv",
            "assign busy_o[q] = («here[Park] && owner[Park] == queue_t'(q)»)",
            "1'b0",
        ),
    ),
    "interrupt-early": PlantedMutant(
        _IRQ,
        EMPTIED,
        Mutant("npu_ctrl_status.sv", "~queue_pending_i & «~queue_busy_i»;", "'1"),
    ),
    # what commands add to the counters and have in their records
    "counter-active": PlantedMutant(
        _COUNTS,
        COUNTERS,
        Mutant("npu_matrix_seq.sv", "stats_o.active        = «issue»;", "running_q"),
    ),
    "counter-beats": PlantedMutant(
        _COUNTS,
        COUNTERS,
        Mutant("npu_csr_wrap.sv", "READ_BEATS.value.next    = «counts.read_beats»;", "'0"),
    ),
    "counter-channel-read": PlantedMutant(
        _COUNTS,
        COUNTERS,
        Mutant("npu_core.sv", "[CHANNEL_COPY1] = «reader_beat[Copy1Source]»;", "reader_beat[Copy]"),
    ),
    "counter-channel-written": PlantedMutant(
        _COUNTS,
        COUNTERS,
        Mutant("npu_core.sv", "[CHANNEL_COPY1] = «writer_beat[Copy1Result]»;", "writer_beat[Copy]"),
    ),
    "counter-busy": PlantedMutant(
        _COUNTS,
        COUNTERS,
        Mutant("npu_perf_counters.sv", "counts_d.busy          += «64'd1»;", "64'd2"),
    ),
    "counter-clear": PlantedMutant(
        _COUNTS,
        COUNTERS,
        Mutant("npu_engine_counters.sv", "clear = !rst_ni || «clear_i»;", "1'b0"),
    ),
    "counter-gathered": PlantedMutant(
        _COUNTS,
        COUNTERS,
        Mutant("npu_gather.sv", "stats.active        = «align_stats.active»;", "state_q == BUSY"),
    ),
    "error-queue": PlantedMutant(
        _IRQ,
        INTERRUPTS,
        Mutant("npu_ctrl.sv", "status.error_queue = «error_state && error_queue»;", "1'b0"),
    ),
    "counter-pair": PlantedMutant(
        _COUNTS,
        COUNTERS,
        Mutant(
            "npu_csr_wrap.sv",
            "engine_counts.command_wait[«i»];",
            "i % NUM_ENGINES * NUM_ENGINES + i / NUM_ENGINES",
        ),
    ),
    "counter-aside": PlantedMutant(
        _COUNTS,
        COUNTERS,
        Mutant("npu_cmd_front.sv", "awaited_opcode[p]   = «parked» ?", "1'b0"),
    ),
    "counter-both": PlantedMutant(
        _COUNTS,
        COUNTERS,
        Mutant(
            "npu_cmd_awaited.sv",
            "if («awaited_o[queue_i][slot]») last_o",
            "awaited_o[queue_i][slot] && awaited_o[!queue_i] == '0",
        ),
    ),
    "counter-sync": PlantedMutant(
        _COUNTS,
        COUNTERS,
        Mutant(
            "npu_cmd_start.sv",
            "start_cycle_o = «state_q == SYNC_WAIT ? sync_cycle_q : cycle_i»;",
            "cycle_i",
        ),
    ),
    "counter-wait": PlantedMutant(
        _COUNTS,
        COUNTERS,
        Mutant("npu_csr_wrap.sv", "engine_counts.engine_wait[«e»];", "e ^ 1"),
    ),
    # the host does not give its data or take an answer yet
    "host-write-early": PlantedMutant(
        _HOST,
        FRONT_DOOR,
        Mutant("npu_host_write.sv", "drop     = «refuse && whole_q != '0» &&", "refuse"),
    ),
    "host-read-room": PlantedMutant(
        _HOST,
        RANDOM_STALLS,
        Mutant("npu_host_read.sv", "head_ok && «room_q >= need»", "1'b1"),
    ),
    "host-read-taken": PlantedMutant(
        _HOST,
        RANDOM_STALLS,
        Mutant("npu_host_read.sv", "ret_pop     = «ret_valid && r_ready_i»", "ret_valid"),
    ),
    "host-write-taken": PlantedMutant(
        _HOST,
        RANDOM_STALLS,
        Mutant("npu_host_write.sv", "b_pop    = «ack_valid && b_ready_i»", "ack_valid"),
    ),
}
