// SPDX-License-Identifier: Apache-2.0
/// Checks a tensor descriptor against what its packet says, and turns it into an engine's view.
///
/// Combinational. `ok_o` low means ERROR_BAD_DESCRIPTOR; `tensor_o` and `rank_o` are meaningful
/// when it is high. The descriptor's dimensions move to the inner end of `tensor_o`.
module npu_desc_check
  import npu_isa_pkg::*;
  import npu_pkg::*;
  import npu_ctrl_pkg::*;
(
  input  descriptor_t desc_i,
  input  logic        is_dst_i,
  input  logic [3:0]  dtype_i,
  input  logic        own_dtype_i,    // any type that exists, instead
  input  logic        shape_known_i,  // then rank and shape must be these
  input  logic [2:0]  rank_i,
  input  shape_t      shape_i,
  input  logic        has_dim_i,      // then dimension dim_i must exist
  input  logic        free_dim_i,     // its size may differ from shape_i's
  input  logic [2:0]  dim_i,
  output logic        ok_o,
  output logic [2:0]  rank_o,
  output npu_tensor_t tensor_o
);
  logic       entries_bad, sizes_bad, shape_bad, dim_bad, broadcast_bad, rank_ok, dtype_ok;
  logic [2:0] first;  // where dimension 0 goes; indices below it are padding

  assign rank_ok = desc_i.rank >= 32'd1 && desc_i.rank <= 32'(MAX_RANK);
  assign rank_o  = desc_i.rank[2:0];
  assign first   = 3'(MAX_RANK) - rank_o;

  // Entries within the rank have a size, those beyond it are zero.
  always_comb begin
    entries_bad = 1'b0;
    for (int unsigned i = 0; i < MAX_RANK; i++) begin
      if (3'(i) < rank_o) begin
        if (desc_i.size[i] == '0) entries_bad = 1'b1;
      end else begin
        if (desc_i.size[i] != '0 || desc_i.stride[i] != '0) entries_bad = 1'b1;
      end
    end
  end

  always_comb begin
    tensor_o.base = desc_i.base;
    for (int unsigned i = 0; i < MAX_RANK; i++) begin
      tensor_o.size[i]   = 32'd1;
      tensor_o.stride[i] = '0;
      for (int unsigned j = 0; j <= i; j++) begin
        if (3'(i - j) == first) begin
          tensor_o.size[i]   = desc_i.size[j];
          tensor_o.stride[i] = desc_i.stride[j];
        end
      end
    end
  end

  always_comb begin
    broadcast_bad = 1'b0;
    for (int unsigned i = 0; i < MAX_RANK; i++) begin
      if (tensor_o.size[i] > 32'd1 && tensor_o.stride[i] == '0) broadcast_bad = is_dst_i;
    end
  end

  always_comb begin
    sizes_bad = 1'b0;
    for (int unsigned i = 0; i < MAX_RANK; i++) begin
      if (tensor_o.size[i] != shape_i[i] && !(free_dim_i && 3'(i) == tensor_dim(dim_i, rank_o)))
        sizes_bad = 1'b1;
    end
  end

  assign shape_bad = shape_known_i && (rank_o != rank_i || sizes_bad);
  assign dim_bad   = has_dim_i && dim_i >= rank_o;

  assign dtype_ok  = own_dtype_i ? desc_i.dtype[31:4] == '0 && dtype_known(desc_i.dtype[3:0])
                                 : desc_i.dtype == 32'(dtype_i);

  assign ok_o = rank_ok && !entries_bad && !shape_bad && !dim_bad && !broadcast_bad && dtype_ok
              && desc_i.reserved == '0;
endmodule
