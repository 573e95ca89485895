// SPDX-License-Identifier: Apache-2.0
/// AXI types inside the memory controller and between it and the pins of npu_top. As in npu_pkg,
/// bus data has ports of its own beside the structures.
package npu_mem_pkg;
  import npu_pkg::*;

  /// Ids on the DRAM port are {client, host id}. Engines number their clients from 0.
  localparam int unsigned AXI_ID_WIDTH = 8;
  localparam int unsigned HOST_ID_WIDTH = 4;
  localparam logic [AXI_ID_WIDTH-HOST_ID_WIDTH-1:0] HOST_CLIENT = '1;

  /// Beats of the longest burst.
  localparam int unsigned MAX_BURST_BEATS = 256;

  typedef enum logic [1:0] {
    BURST_FIXED = 2'd0,
    BURST_INCR = 2'd1,
    BURST_WRAP = 2'd2,
    BURST_RESERVED = 2'd3
  } burst_e;

  typedef enum logic [1:0] {
    RESP_OKAY = 2'd0,
    RESP_EXOKAY = 2'd1,
    RESP_SLVERR = 2'd2,
    RESP_DECERR = 2'd3
  } resp_e;

  /// Payload of an address channel of the DRAM port.
  typedef struct packed {
    logic [AXI_ID_WIDTH-1:0] id;
    logic [ADDR_WIDTH-1:0] addr;
    logic [7:0] len;
    logic [2:0] size;
    burst_e burst;
  } axi_addr_t;

  /// Payload of an address channel of the host port.
  typedef struct packed {
    logic [HOST_ID_WIDTH-1:0] id;
    logic [ADDR_WIDTH-1:0] addr;
    logic [7:0] len;
    logic [2:0] size;
    burst_e burst;
  } host_addr_t;

  /// What the manager drives on the DRAM port, which is the memory controller.
  typedef struct packed {
    logic ar_valid;
    axi_addr_t ar;
    logic r_ready;
    logic aw_valid;
    axi_addr_t aw;
    logic w_valid;
    logic w_last;
    logic b_ready;
  } axi_req_t;

  /// What the DRAM answers.
  typedef struct packed {
    logic ar_ready;
    logic r_valid;
    logic [AXI_ID_WIDTH-1:0] r_id;
    resp_e r_resp;
    logic r_last;
    logic aw_ready;
    logic w_ready;
    logic b_valid;
    logic [AXI_ID_WIDTH-1:0] b_id;
    resp_e b_resp;
  } axi_rsp_t;

  /// What the host drives on its port.
  typedef struct packed {
    logic ar_valid;
    host_addr_t ar;
    logic r_ready;
    logic aw_valid;
    host_addr_t aw;
    logic w_valid;
    logic w_last;
    logic b_ready;
  } host_req_t;

  /// What the memory controller answers.
  typedef struct packed {
    logic ar_ready;
    logic r_valid;
    logic [HOST_ID_WIDTH-1:0] r_id;
    resp_e r_resp;
    logic r_last;
    logic aw_ready;
    logic w_ready;
    logic b_valid;
    logic [HOST_ID_WIDTH-1:0] b_id;
    resp_e b_resp;
  } host_rsp_t;
endpackage
