# SPDX-License-Identifier: Apache-2.0
"""Sizes, counts and addresses of which some upper bits are lost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tb.mutants.expression import Mutant
from tb.mutants.planted import PlantedMutant
from tb.mutants.runs import ERRORS, LONG, OPERANDS, RELOADS

_SIZES: Final = "sizes beyond 16 bits"

SIZES: Final[Mapping[str, PlantedMutant]] = {
    "size-batch": PlantedMutant(
        _SIZES,
        LONG,
        Mutant("npu_matrix_blocks.sv", "= «batches_q == 32'd1»;", "8'(batches_q) == 1"),
    ),
    "size-depth": PlantedMutant(
        _SIZES,
        LONG,
        Mutant(
            "npu_matrix_seq.sv",
            "last_pass = «k_left_q <= 32'(ArraySize)»;",
            "k_left_q[15:0] <= 16'(ArraySize)",
        ),
    ),
    "size-rows": PlantedMutant(
        _SIZES,
        LONG,
        Mutant(
            "npu_vector_groups.sv",
            "at_end[d] = «outer_q[d] == size_i[d] - 32'd1»;",
            "outer_q[d][15:0] == 16'(size_i[d] - 32'd1)",
        ),
    ),
    "size-count": PlantedMutant(
        _SIZES,
        LONG,
        Mutant(
            "npu_vector_groups.sv", "row_end ? '0 : «index_q + Lanes»;", "32'(16'(index_q + Lanes))"
        ),
    ),
    "size-copy": PlantedMutant(
        _SIZES,
        LONG,
        Mutant(
            "npu_copy_walk.sv",
            "if (loop_q[d] && «index_q[d] != view_i.size[d] - 32'd1»)",
            "index_q[d][15:0] != 16'(view_i.size[d] - 32'd1)",
        ),
    ),
    "size-index": PlantedMutant(
        _SIZES,
        LONG,
        Mutant("npu_gather_index.sv", "(ADDR_WIDTH'(«value[31:0]») *", "value[15:0]"),
    ),
    "size-rank": PlantedMutant(
        _SIZES,
        ERRORS,
        Mutant(
            "npu_desc_check.sv",
            "rank_ok = «desc_i.rank >= 32'd1 && desc_i.rank <= 32'(MAX_RANK)»;",
            "desc_i.rank[7:0] >= 8'd1 && desc_i.rank[7:0] <= 8'(MAX_RANK)",
        ),
    ),
    "size-tag": PlantedMutant(
        _SIZES,
        OPERANDS,
        Mutant(
            "npu_matrix_tags.sv",
            "&& «tag_q[set] == row[LineW-1:REUSE_WIDTH]»",
            "tag_q[set][15:0] == row[REUSE_WIDTH+15:REUSE_WIDTH]",
        ),
    ),
    "size-line": PlantedMutant(
        _SIZES,
        RELOADS,
        Mutant(
            "npu_program_dir.sv",
            "if («line_i < 32'(BOOT_LINES)»)",
            "line_i[15:0] < 16'(BOOT_LINES)",
        ),
    ),
    "size-fetched": PlantedMutant(
        _SIZES,
        RELOADS,
        Mutant("npu_vector_fetch.sv", "&& «line_q == line_i»)", "line_q[9:0] == line_i[9:0]"),
    ),
}
