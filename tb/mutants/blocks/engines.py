# SPDX-License-Identifier: Apache-2.0
"""Wrong lines in the engines: addresses, buffers, tables, types."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tb.mutants.expression import Mutant
from tb.mutants.planted import PlantedMutant
from tb.mutants.runs import (
    BUS_ERRORS,
    CONVERSIONS,
    INT4,
    OPERANDS,
    POOLS,
    PRODUCTS,
    RANDOM,
    RANDOM_STALLS,
    STALLED_OPS,
    TABLES,
)

_WINDOW: Final = "windows"
_BUFFER: Final = "operand buffer"
_REQUESTS: Final = "requests to the memory"
_ROOM: Final = "room for results"
_OPERANDS: Final = "operands of the engines"
_INT4_WEIGHTS: Final = "weights of four bits"
_TABLE: Final = "tables"
_STRIDES: Final = "strided sources"
_CONVERSION: Final = "conversions"

ENGINES: Final[Mapping[str, PlantedMutant]] = {
    # windows
    "window-digit": PlantedMutant(
        _WINDOW, PRODUCTS, Mutant("npu_matrix_walk.sv", "«here_i.middle == 32'd1»;", "1'b0")
    ),
    "window-step": PlantedMutant(
        _WINDOW, PRODUCTS, Mutant("npu_matrix_walk.sv", "+ «passed» + step", "64'd0")
    ),
    "window-line": PlantedMutant(
        _WINDOW,
        PRODUCTS,
        Mutant("npu_matrix_lines.sv", "(«elem_pos.inner < 32'(left)») ?", "1'b0"),
    ),
    "window-result": PlantedMutant(
        _WINDOW,
        PRODUCTS,
        Mutant("npu_matrix_drain.sv", "(«col_pos_q.inner < 32'(left)») ?", "1'b0"),
    ),
    # the operand buffer
    "buffer-stale": PlantedMutant(
        _BUFFER, PRODUCTS, Mutant("npu_matrix_tags.sv", "|| «start_i») valid_q", "1'b0")
    ),
    "buffer-tag": PlantedMutant(
        _BUFFER,
        PRODUCTS,
        Mutant("npu_matrix_tags.sv", "&& «tag_q[set] == row[LineW-1:REUSE_WIDTH]»", "1'b1"),
    ),
    "buffer-fresh": PlantedMutant(
        _BUFFER, PRODUCTS, Mutant("npu_matrix_banks.sv", "= «fresh_q[b]» ?", "1'b0")
    ),
    "buffer-set": PlantedMutant(
        _BUFFER,
        PRODUCTS,
        Mutant("npu_matrix_banks.sv", "SetW'(«3'(pending_i.first[1:0]) > 3'(b)»)", "1'b0"),
    ),
    # requests to the memory
    "request-dropped": PlantedMutant(
        _REQUESTS,
        BUS_ERRORS,
        Mutant("npu_gather.sv", "valid : «wr_req_o.valid» ||", "1'b0", "RequestStable"),
    ),
    "request-source": PlantedMutant(
        _REQUESTS,
        RANDOM_STALLS,
        Mutant(
            "npu_gather_port.sv",
            "«held_q ? pick_q : req_valid_i[1]»",
            "req_valid_i[1]",
            "RequestStable",
        ),
    ),
    "request-walk": PlantedMutant(
        _REQUESTS,
        BUS_ERRORS,
        Mutant("npu_copy_walk.sv", "WALK: if («fire»)", "fire || stop_i", "RequestStable"),
    ),
    "request-copy-error": PlantedMutant(
        _REQUESTS,
        BUS_ERRORS,
        Mutant("npu_copy.sv", "write_err_q || («wr_rsp_i.done» && wr_rsp_i.err)", "1'b1"),
    ),
    "request-gather-error": PlantedMutant(
        _REQUESTS,
        BUS_ERRORS,
        Mutant("npu_gather.sv", "write_err_q || («wr_rsp_i.done» && wr_rsp_i.err)", "1'b1"),
    ),
    "request-sum-error": PlantedMutant(
        _REQUESTS,
        BUS_ERRORS,
        Mutant("npu_gather.sv", "(wr_rsp_i.done && «wr_rsp_i.err»)", "wr_rsp_i.err && !add"),
    ),
    # what only a channel that pauses for long fills up
    "room-rows": PlantedMutant(
        _ROOM,
        STALLED_OPS,
        Mutant("npu_vector_reduce.sv", "- RoomW'(«take && row_end_i»);", "take || row_end_i"),
    ),
    "room-results": PlantedMutant(
        _ROOM,
        STALLED_OPS,
        Mutant("npu_vector_results.sv", "assign room_o[n]  = «room_q != '0»;", "1'b1"),
    ),
    "room-lines": PlantedMutant(
        _ROOM,
        STALLED_OPS,
        Mutant("npu_matrix_pack.sv", "line_valid_i && «room»;", "1'b1"),
    ),
    # an engine touches what its command was not checked for
    "operand-rows": PlantedMutant(
        _OPERANDS,
        PRODUCTS,
        Mutant(
            "npu_matrix_tiles.sv",
            "left = «total - (32'(tile) << LaneW)»;",
            "total",
            "ReadsItsOperands",
        ),
    ),
    "operand-sums-row": PlantedMutant(
        _OPERANDS,
        OPERANDS,
        Mutant(
            "npu_matrix_tiles.sv",
            "stepped(c_q, 1'b0, '0, 1'b1, «next_row», next_batch",
            "block_end",
        ),
    ),
    "operand-sums-column": PlantedMutant(
        _OPERANDS,
        OPERANDS,
        Mutant("npu_matrix_tiles.sv", "c_col_block_q <= «block_i.last_col» ?", "1'b1"),
    ),
    "operand-start": PlantedMutant(
        _OPERANDS,
        RANDOM,
        Mutant("npu_range_check.sv", "= «offset[63:0]»;", "offset[63:0] + 64'd8", "u_span_checker"),
    ),
    "operand-result": PlantedMutant(
        _OPERANDS,
        RANDOM,
        Mutant(
            "npu_operand_resolve.sv",
            "span_o.write = «operand.is_dst»;",
            "operand.is_dst && which != CMD_DST2",
            "WritesItsResults",
        ),
    ),
    # fp32 to shorter types
    "convert-bf16": PlantedMutant(
        _CONVERSION,
        CONVERSIONS,
        Mutant(
            "npu_fp_pkg.sv", "value[15] && (value[16] || «value[14:0] != 0»)", "value[14:1] != 0"
        ),
    ),
    "convert-fp16": PlantedMutant(
        _CONVERSION,
        CONVERSIONS,
        Mutant(
            "npu_fp_pkg.sv", "value[12] && (value[13] || «value[11:0] != 0»)", "value[11:1] != 0"
        ),
    ),
    "convert-bf16-even": PlantedMutant(
        _CONVERSION,
        CONVERSIONS,
        Mutant("npu_fp_pkg.sv", "value[15] && («value[16]» ||", "1'b1"),
    ),
    # weights of four bits
    "int4-sign": PlantedMutant(
        _INT4_WEIGHTS, INT4, Mutant("npu_matrix_dequant.sv", "scale[31] ^ «!nibble[3]»", "1'b0")
    ),
    "int4-tie": PlantedMutant(
        _INT4_WEIGHTS, INT4, Mutant("npu_matrix_dequant.sv", "&& «product[0]»);", "1'b1")
    ),
    "int4-zero": PlantedMutant(
        _INT4_WEIGHTS,
        OPERANDS,
        Mutant("npu_matrix_dequant.sv", "scaled = {«scale[31]», 31'd0};", "1'b0"),
    ),
    "int4-subnormal": PlantedMutant(
        _INT4_WEIGHTS,
        OPERANDS,
        Mutant("npu_matrix_dequant.sv", "+ 9'(«scale[30:23] == '0»);", "1'b0"),
    ),
    "int4-infinity": PlantedMutant(
        _INT4_WEIGHTS,
        OPERANDS,
        Mutant("npu_matrix_dequant.sv", "(scale[22:0] != '0 || «number == '0») ?", "1'b0"),
    ),
    "int4-block": PlantedMutant(
        _INT4_WEIGHTS,
        OPERANDS,
        Mutant("npu_matrix_tiles.sv", "s_q <= stepped(s_q, take_s || «block_end»,", "1'b0"),
    ),
    "int4-scale": PlantedMutant(
        _INT4_WEIGHTS,
        INT4,
        Mutant("npu_matrix_dequant.sv", "= EntryW'(«wr_place_i.place[15:8]»)", "8'd0"),
    ),
    "int4-group": PlantedMutant(
        _INT4_WEIGHTS,
        OPERANDS,
        Mutant("npu_matrix_tiles.sv", "s_k_q        <= «s_k_next_q»;", "s_k_q"),
    ),
    # errors of operands that few commands have
    "operand-refused-source": PlantedMutant(
        _OPERANDS,
        BUS_ERRORS,
        Mutant(
            "npu_vector.sv",
            "if («rd_rsp_i[s].data_valid && rd_rsp_i[s].data_err») read_err",
            "rd_rsp_i[s].data_valid && rd_rsp_i[s].data_err && s != 3",
        ),
    ),
    "operand-refused-result": PlantedMutant(
        _OPERANDS,
        BUS_ERRORS,
        Mutant(
            "npu_vector.sv",
            "if («wr_rsp_i[n].done && wr_rsp_i[n].err») write_err",
            "wr_rsp_i[n].done && wr_rsp_i[n].err && n == 0",
        ),
    ),
    # tables
    "table-end": PlantedMutant(
        _TABLE,
        OPERANDS,
        Mutant("npu_vector_table.sv", "if («index > 32'(TABLE_LAST[number])»)", "1'b0"),
    ),
    "table-sign": PlantedMutant(
        _TABLE, TABLES, Mutant("npu_vector_table.sv", "{negative: «word[31]»,", "1'b0")
    ),
    "table-row": PlantedMutant(
        _TABLE, TABLES, Mutant("npu_vector_table.sv", "= segment_q[«slot_i»]", "found_slot_q")
    ),
    "table-number": PlantedMutant(
        _TABLE,
        OPERANDS,
        Mutant("npu_vector_table.sv", "segment_of(a_i[l*32 +: 32], «found_table_q»)", "table_q"),
    ),
    # sources whose elements are at a distance
    "stride-three": PlantedMutant(
        _STRIDES,
        OPERANDS,
        Mutant(
            "npu_vector_load.sv",
            "if («view_i.stride[MAX_RANK-1] == 32'd2»)",
            "view_i.stride[MAX_RANK-1][31:1] == 31'd1",
        ),
    ),
    "stride-four": PlantedMutant(
        _STRIDES,
        OPERANDS,
        Mutant("npu_vector_unpack.sv", "take && «gap_log2_i == 2'd2») own", "1'b0"),
    ),
    "stride-elements": PlantedMutant(
        _STRIDES,
        POOLS,
        Mutant("npu_vector_load.sv", "(view_i.size[MAX_RANK-1] - «32'd1») <<", "32'd0"),
    ),
}
