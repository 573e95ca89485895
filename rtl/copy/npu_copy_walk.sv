// SPDX-License-Identifier: Apache-2.0
/// Walks the elements of a view in row-major order and requests them as runs of contiguous bytes.
///
/// Dimensions that are contiguous from the innermost outwards are merged into the run, one per
/// cycle, as long as `merge_i` allows and the run stays below 2^RunW bytes; the rest are loops, one
/// run per cycle. Runs longer than a request of 2^RequestW bytes are cut at multiples of that, or
/// of a page where that is less; with `short_i` at multiples of SHORT_REQ_BYTES. `req_last_o` marks
/// the last request of a run. First request 2 to 6 cycles after `start_i`; `loop_o`, the dimensions
/// that are loops, is valid from then on. `view_i`, `merge_i` and `short_i` must be stable while
/// `busy_o`. `stop_i` ends the walk after the request that is offered.
module npu_copy_walk
  import npu_isa_pkg::*;
  import npu_pkg::*;
#(
  parameter int unsigned RunW     = 32,
  parameter int unsigned RequestW = $clog2(MAX_REQ_BYTES)
) (
  input  logic                       clk_i,
  input  logic                       rst_ni,

  input  logic                       start_i,
  input  logic                       stop_i,
  output logic                       busy_o,
  input  npu_tensor_t                view_i,
  input  logic [MAX_RANK-1:0]        merge_i,
  input  logic                       short_i,
  input  logic [1:0]                 elem_log2_i,

  output logic                       req_valid_o,
  input  logic                       req_ready_i,
  output mem_range_t                 req_range_o,
  output logic                       req_last_o,
  output logic [MAX_RANK-1:0]        loop_o
);
  localparam int unsigned DimW = $clog2(MAX_RANK);
  localparam int unsigned PageW = $clog2(PAGE_BYTES);
  localparam int unsigned ShortW = $clog2(SHORT_REQ_BYTES);
  localparam int unsigned CutW = (RequestW < PageW) ? RequestW : PageW;
  localparam logic [REQ_BYTES_WIDTH-1:0] MaxRequest = REQ_BYTES_WIDTH'(1 << RequestW);

  typedef enum logic [1:0] {
    IDLE,   // waiting for a command
    MERGE,  // looking at dimension dim_q: part of the run, or a loop
    WALK    // offering one request per cycle
  } state_e;

  state_e                              state_q, state_d;
  logic [DimW-1:0]                     dim_q, dim_d;
  logic [RunW-1:0]                     run_q, run_d;      // bytes of a whole run
  logic [MAX_RANK-1:0]                 loop_q, loop_d;    // dimensions that are not in the run
  logic [ADDR_WIDTH-1:0]               addr_q, addr_d;    // of the request offered
  logic [RunW-1:0]                     left_q, left_d;    // bytes of this run from addr_q on
  logic [MAX_RANK-1:0][31:0]           index_q;
  logic [MAX_RANK-1:0][ADDR_WIDTH-1:0] base_q;    // first element under index_q[d]

  logic [31:0]           size, others;
  logic [RunW+31:0]      merged;
  logic                  contiguous, fire, run_done, more;
  logic [DimW-1:0]       step_dim;
  logic [ADDR_WIDTH-1:0] step_addr;
  logic [RunW-1:0]       chunk;

  function automatic logic [ADDR_WIDTH-1:0] byte_stride(logic [31:0] stride, logic [1:0] log2);
    return ADDR_WIDTH'(stride) << log2;
  endfunction

  assign busy_o      = state_q != IDLE;
  assign req_valid_o = state_q == WALK;
  assign req_range_o = '{addr: addr_q, bytes: REQ_BYTES_WIDTH'(chunk)};
  assign fire        = req_valid_o && req_ready_i;
  assign run_done    = left_q == chunk;

  assign req_last_o  = run_done;
  assign loop_o      = loop_q;

  // A run that does not end inside one request is cut so that the next one starts aligned.
  always_comb begin
    chunk = RunW'(MaxRequest) - RunW'(addr_q[CutW-1:0]);
    if (short_i) chunk = RunW'(SHORT_REQ_BYTES) - RunW'(addr_q[ShortW-1:0]);
    if (left_q < chunk) chunk = left_q;
  end

  // Whether dimension dim_q continues the run, and how long the run then is.
  always_comb begin
    size       = view_i.size[dim_q];
    merged     = '0;
    contiguous = 1'b0;
    if (state_q == MERGE) begin
      merged     = (RunW + 32)'(run_q) * (RunW + 32)'(size);
      contiguous = merge_i[dim_q] && (size == 32'd1
                || (byte_stride(view_i.stride[dim_q], elem_log2_i) == ADDR_WIDTH'(run_q)
                    && merged[RunW+31:RunW] == '0));
    end
  end

  // Sizes outside dim_q; all ones means that there is nothing left to merge or to loop over.
  always_comb begin
    others = 32'd1;
    if (state_q == MERGE) begin
      for (int unsigned d = 0; d < MAX_RANK; d++) begin
        if (DimW'(d) < dim_q) others |= view_i.size[d];
      end
    end
  end

  // The innermost loop that has not reached its end takes a step; all loops inside it start over.
  always_comb begin
    more      = 1'b0;
    step_dim  = '0;
    step_addr = addr_q;
    if (fire && run_done) begin
      for (int unsigned d = 0; d < MAX_RANK; d++) begin
        if (loop_q[d] && index_q[d] != view_i.size[d] - 32'd1) begin
          more     = 1'b1;
          step_dim = DimW'(d);
        end
      end
      step_addr = base_q[step_dim] + byte_stride(view_i.stride[step_dim], elem_log2_i);
    end
  end

  always_comb begin
    state_d = state_q;
    dim_d   = dim_q;
    run_d   = run_q;
    loop_d  = loop_q;
    addr_d  = addr_q;
    left_d  = left_q;
    unique case (state_q)
      IDLE: if (start_i) begin
        state_d = MERGE;
        dim_d   = DimW'(MAX_RANK - 1);
        run_d   = RunW'(1) << elem_log2_i;
        addr_d  = view_i.base;
        loop_d  = '1;
      end
      MERGE: begin
        if (contiguous) begin
          run_d         = merged[RunW-1:0];
          loop_d[dim_q] = 1'b0;
        end
        left_d = run_d;
        if (contiguous && others != 32'd1) dim_d = dim_q - DimW'(1);
        else                               state_d = stop_i ? IDLE : WALK;
      end
      WALK: if (fire) begin
        addr_d = run_done ? step_addr : addr_q + ADDR_WIDTH'(chunk);
        left_d = run_done ? run_q : left_q - chunk;
        if (stop_i || (run_done && !more)) state_d = IDLE;
      end
      default: state_d = IDLE;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= IDLE;
    else         state_q <= state_d;
  end

  always_ff @(posedge clk_i) begin
    if (start_i || busy_o) begin
      dim_q  <= dim_d;
      run_q  <= run_d;
      loop_q <= loop_d;
      addr_q <= addr_d;
      left_q <= left_d;
    end
  end

  for (genvar d = 0; d < MAX_RANK; d++) begin : gen_loop
    always_ff @(posedge clk_i) begin
      if (start_i) begin
        index_q[d] <= '0;
        base_q[d]  <= view_i.base;
      end else if (fire && run_done && DimW'(d) >= step_dim) begin
        index_q[d] <= (DimW'(d) == step_dim) ? index_q[d] + 32'd1 : '0;
        base_q[d]  <= step_addr;
      end
    end
  end
endmodule
