#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `make` prints when it is given nothing to do. Needs nothing installed.
cat <<'END'
npu-cosim: PyTorch workloads through the RTL of an NPU, checked bit for bit

Run
  make SIM=verilator TEST=matmul     a test: RTL against cmodel (bits) and torch (bound)
  make capture WORKLOAD=lenet        a torch model into a capsule: lenet, mlp, qwen_layer
  make replay CAPSULE=dir            a capsule's ops through the RTL
  make unit TEST=fp_fma              an RTL unit bench; VECTORS=file in TestFloat's format
  make tests                         list tests, unit benches, configurations and backends
  make bench                         the figures of merit into out/bench/bench.json

Check
  make test                          everything below, Python tests, unit benches, RTL tests
  make lint | types | format         style and RTL lint | mypy | reformat Python and C++
  make gen | gen-check               write | compare the generated files
  make regs                          browsable register reference into build/regs

Keep
  make setup | clean | lock          environment | remove build/ and out/ | re-pin packages

Variables
  SIM=verilator    TEST=name        CONFIG=default   of sim_config.yaml
  SEED=1           OP=index         only this op     BACKEND=rtl|cmodel
  WAVES=vcd|fst    OUT=dir          default out/TEST-SEED
  WORKLOAD=name    CHECKPOINT=dir   TIMEOUT=seconds  PYTHON=python3.x
  MODE=isolated|chained             ops on torch's tensors, or on the NPU's own results
  FPU=exact|host   host: the RTL's multiply-add is the host's; faster, without assertions
  ALLOW_CPU=1      the CPU runs what the NPU cannot, and the ledger says so
END
