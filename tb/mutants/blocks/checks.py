# SPDX-License-Identifier: Apache-2.0
"""Wrong lines in the checks of packets and of their operands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tb.mutants.expression import Mutant
from tb.mutants.planted import PlantedMutant
from tb.mutants.runs import (
    BUS_ERRORS,
    ERRORS,
    OPERANDS,
    RANDOM,
    RELOADS,
    SEVERAL_ERRORS,
)

_CHECK: Final = "operand checks"

CHECKS: Final[Mapping[str, PlantedMutant]] = {
    # a wrong operand is accepted, or the bytes of one are counted wrong
    "check-sync": PlantedMutant(
        _CHECK,
        ERRORS,
        Mutant(
            "npu_operand_select.sv",
            "operand_o.log2_bytes = «dtype_log2_bytes(DTYPE_INT32)»;",
            "2'd0",
        ),
    ),
    "check-index": PlantedMutant(
        _CHECK,
        BUS_ERRORS,
        Mutant(
            "npu_gather_index.sv",
            "index.bad    = «value >= 64'(limit_i)»;",
            "64'(value[31:0]) >= 64'(limit_i)",
        ),
    ),
    "check-fetch": PlantedMutant(
        _CHECK,
        BUS_ERRORS,
        Mutant(
            "npu_cmd_issue.sv",
            "packet_q    <= «cmd_i.fetch_err ? '0 : cmd_i.packet»;",
            "cmd_i.packet",
        ),
    ),
    "check-immediates": PlantedMutant(
        _CHECK,
        OPERANDS,
        Mutant("npu_cmd_check.sv", "= «(listed || i < PLAIN_IMMEDIATES)» ?", "1'b1"),
    ),
    "check-window-batch": PlantedMutant(
        _CHECK,
        ERRORS,
        Mutant(
            "npu_window_check.sv", "«window_i.size[VIEW_BATCH] != shape_i[MAX_RANK-3]»;", "1'b0"
        ),
    ),
    "check-window-repeats": PlantedMutant(
        _CHECK,
        ERRORS,
        Mutant(
            "npu_window_check.sv",
            "if (is_dst_i && «window_i.size[i] > 32'd1» &&",
            "window_i.size[i] > 32'd1 && i != VIEW_ROW",
        ),
    ),
    # of two things that are wrong, the second is reported
    "check-order-type": PlantedMutant(
        _CHECK,
        SEVERAL_ERRORS,
        Mutant("npu_cmd_decode.sv", "else if («reserved_bad»)", "reserved_bad && !dtype_bad"),
    ),
    "check-order-parameter": PlantedMutant(
        _CHECK,
        SEVERAL_ERRORS,
        Mutant("npu_cmd_decode.sv", "else if («dtype_bad») ", "dtype_bad && !param_bad"),
    ),
    "check-window-end": PlantedMutant(
        _CHECK,
        ERRORS,
        Mutant(
            "npu_window_check.sv",
            "|| «window_i.reserved_end != '0» ||",
            "window_i.reserved_end[7:0] != '0",
        ),
    ),
    "check-list-type": PlantedMutant(
        _CHECK,
        ERRORS,
        Mutant(
            "npu_desc_check.sv",
            "own_dtype_i ? «desc_i.dtype[31:4] == '0» &&",
            "desc_i.dtype[7:4] == '0",
        ),
    ),
    "check-size": PlantedMutant(
        _CHECK,
        ERRORS,
        Mutant("npu_desc_check.sv", "if («desc_i.size[i] != '0» || desc_i.stride[i]", "1'b0"),
    ),
    "check-load-line": PlantedMutant(
        _CHECK,
        ERRORS,
        Mutant(
            "npu_cmd_decode.sv",
            "|| «packet_i.param[LOAD_LINE] >= 32'(PROGRAM_RAM + PROGRAM_RAM_LINES)»",
            "1'b0",
        ),
    ),
    "check-order-loaded": PlantedMutant(
        _CHECK,
        SEVERAL_ERRORS,
        Mutant("npu_cmd_decode.sv", "else if («not_loaded»)", "not_loaded && !param_bad"),
    ),
    "check-order-descriptor": PlantedMutant(
        _CHECK,
        SEVERAL_ERRORS,
        Mutant(
            "npu_operand_resolve.sv",
            "if («operand.addr[5:0] != '0») address_error",
            "operand.addr[5:0] != '0 && line_inside(operand.addr[63:6], MemBase, MemLimit)",
        ),
    ),
    "check-order-address": PlantedMutant(
        _CHECK,
        SEVERAL_ERRORS,
        Mutant("npu_range_check.sv", "= «misaligned» ?", "misaligned && !outside"),
    ),
    "check-sources": PlantedMutant(
        _CHECK,
        RELOADS,
        Mutant("npu_cmd_decode.sv", "plain_bad = «prog_i.sources > 3'(PLAIN_SOURCES)» ||", "1'b0"),
    ),
    "check-sums": PlantedMutant(
        _CHECK,
        ERRORS,
        Mutant(
            "npu_isa_pkg.sv",
            "dtype == DTYPE_BF16 || «dtype == DTYPE_INT32»;",
            "dtype == DTYPE_INT32 || dtype == DTYPE_INT64",
        ),
    ),
    # a command that has failed gets the error of its record
    "check-record": PlantedMutant(
        _CHECK,
        BUS_ERRORS,
        Mutant("npu_cmd_retire.sv", "(«write_err_i && error_q == ERROR_NONE») ?", "write_err_i"),
    ),
    "check-dimension": PlantedMutant(
        _CHECK, ERRORS, Mutant("npu_desc_check.sv", "«dim_i >= rank_o»", "dim_i > rank_o")
    ),
    "check-product": PlantedMutant(
        _CHECK,
        ERRORS,
        Mutant("npu_window_check.sv", "wide_q <= «product_q[63:32] != '0»;", "1'b0"),
    ),
    "check-list": PlantedMutant(
        _CHECK,
        RANDOM,
        Mutant("npu_operand_resolve.sv", "dtype_log2_bytes(«window.dtype[3:0]»)", "operand.dtype"),
    ),
}
