// Packages that the bound checkers of the bench refer to.
rtl/pkg/npu_isa_pkg.sv
rtl/pkg/npu_vector_pkg.sv
rtl/pkg/npu_pkg.sv
rtl/mem/npu_mem_pkg.sv
rtl/ctrl/npu_ctrl_pkg.sv
npu_top.sv
