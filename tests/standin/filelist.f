npu_top.sv
