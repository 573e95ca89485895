// Paths are relative to this file's folder; each level uses only the levels above it.
// packages
pkg/npu_isa_pkg.sv
pkg/npu_vector_pkg.sv
pkg/npu_pkg.sv
fpu/npu_fp_pkg.sv
fpu/npu_fma_pkg.sv
fpu/npu_fp_alu_pkg.sv
fpu/npu_fp_div_pkg.sv
mem/npu_mem_pkg.sv
matrix/npu_matrix_pkg.sv
vector/npu_vector_types_pkg.sv
csr/gen/npu_csr_pkg.sv
ctrl/npu_ctrl_pkg.sv
// cells
common/npu_clock_gate.sv
common/npu_fifo.sv
common/npu_outstanding.sv
common/npu_stream_reg.sv
// memory controller
mem/npu_burst_split.sv
mem/npu_rr_arb.sv
mem/npu_addr_channel.sv
mem/npu_wr_resp_merge.sv
mem/npu_read_buffer.sv
mem/npu_host_check.sv
mem/npu_host_read.sv
mem/npu_host_write.sv
mem/npu_read_path.sv
mem/npu_write_path.sv
mem/npu_write_buffer.sv
mem/npu_mem_ctrl.sv
// move engine
copy/npu_copy_align.sv
copy/npu_copy_run.sv
copy/npu_copy_walk.sv
copy/npu_copy_read.sv
copy/npu_copy_write.sv
copy/npu_copy.sv
// gather engine
gather/npu_gather_port.sv
gather/npu_gather_hazard.sv
gather/npu_gather_index.sv
gather/npu_gather_add.sv
gather/npu_gather.sv
// matrix engine
matrix/npu_matrix_walk.sv
matrix/npu_matrix_blocks.sv
matrix/npu_matrix_tiles.sv
matrix/npu_matrix_lines.sv
matrix/npu_matrix_tags.sv
matrix/npu_matrix_banks.sv
matrix/npu_matrix_unpack.sv
matrix/npu_matrix_dequant.sv
matrix/npu_matrix_seq.sv
matrix/npu_matrix_row.sv
matrix/npu_matrix_array.sv
matrix/npu_matrix_acc.sv
matrix/npu_matrix_drain.sv
matrix/npu_matrix_pack.sv
matrix/npu_matrix.sv
// vector engine
vector/npu_program_mem.sv
vector/npu_program_check.sv
vector/npu_program_dir.sv
vector/npu_program_load.sv
vector/npu_vector_fetch.sv
vector/npu_vector_unpack.sv
vector/npu_vector_load.sv
vector/npu_vector_groups.sv
vector/npu_vector_seq.sv
vector/npu_vector_table.sv
vector/npu_vector_operands.sv
vector/npu_vector_lanes.sv
vector/npu_vector_fold.sv
vector/npu_vector_reduce.sv
vector/npu_vector_store.sv
vector/npu_vector_results.sv
vector/npu_vector.sv
// registers
csr/gen/npu_csr.sv
csr/npu_perf_counters.sv
csr/npu_engine_counters.sv
csr/npu_csr_wrap.sv
// command processor
ctrl/npu_line_reader.sv
ctrl/npu_line_writer.sv
ctrl/npu_ring_fetch.sv
ctrl/npu_cmd_queue.sv
ctrl/npu_cmd_queues.sv
ctrl/npu_cmd_decode.sv
ctrl/npu_operand_select.sv
ctrl/npu_desc_check.sv
ctrl/npu_window_check.sv
ctrl/npu_range_check.sv
ctrl/npu_desc_lines.sv
ctrl/npu_operand_views.sv
ctrl/npu_operand_resolve.sv
ctrl/npu_cmd_check.sv
ctrl/npu_hazard.sv
ctrl/npu_cmd_awaited.sv
ctrl/npu_cmd_wait_counters.sv
ctrl/npu_cmd_order.sv
ctrl/npu_cmd_start.sv
ctrl/npu_cmd_issue.sv
ctrl/npu_cmd_park.sv
ctrl/npu_cmd_front.sv
ctrl/npu_engine_slot.sv
ctrl/npu_cmd_engines.sv
ctrl/npu_cmd_table.sv
ctrl/npu_cmd_retire.sv
ctrl/npu_cmd_inflight.sv
ctrl/npu_recovery.sv
ctrl/npu_ctrl_status.sv
ctrl/npu_ctrl.sv
// whole
npu_core.sv
npu_top.sv
