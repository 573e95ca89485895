#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# What `make` prints when it is given nothing to do. Needs nothing installed.
cat <<'END'
npu-cosim: PyTorch workloads through the RTL of an NPU, checked bit for bit

Run
  make SIM=verilator TEST=matmul     a test: RTL against cmodel (bits) and torch (bound)
  make capture WORKLOAD=lenet        a torch model into a capsule; WORKLOAD=path/to/file.py: yours
       DTYPE=bfloat16                its type: float32, float16, bfloat16 (DEVICE=cpu)
  make replay CAPSULE=dir            a capsule's ops through the RTL
  make unit TEST=fp_fma              an RTL unit bench; VECTORS=file in TestFloat's format
  make tests                         list tests, unit benches, configurations and backends
  make bench                         the figures of merit into out/bench/bench.json
  make optable                       torch's own op samples on the cmodel; writes docs/ops.md
  make architectures                 transformers' models on the cmodel; docs/architectures.md

Every night (docs/nightly.md)
  make smoke | ci | nightly | weekly a tier of sim_config.yaml: every result kept, then reports
       RESUME=1 ONLY_FAILED=1        what is missing of the last plan; what was red
       DRY_RUN=1 FILTER='test=mat*'  show the plan; only a part of it
       BUDGET=90m RESEED=7 JOBS=2    most valuable first; other seeds; jobs at once
       SCHEDULER=tcp://… STORE=url   dask workers; a results server

After it (docs/reports.md); ID of an attempt, as the report shows it
  make replay ID=…  [OP=n]           a stored failure again: is it the same?
  make waves | shrink ID=… [OP=n]    its waves with markers | the smallest test that still fails
  make bisect ID=… GOOD=revision     the revision that broke it (BAD=HEAD)
  make triage | report               failures in order | the dashboard again
  make baseline [TIER=nightly]       record cycles, utilisation, coverage and passes

Check
  make test                          everything below, Python tests, unit benches, RTL tests
  make lint | types | format         style and RTL lint | mypy | reformat Python and C++
  make gen | gen-check               write | compare the generated files
  make regs                          browsable register reference into build/regs

Keep
  make setup | clean | lock          environment | remove build/ and out/ but results | re-pin

Variables
  SIM=verilator    TEST=name        CONFIG=default   of sim_config.yaml
  SEED=1           OP=index         only this op     BACKEND=rtl|cmodel
  WAVES=vcd|fst    OUT=dir          default out/TEST-SEED
  WORKLOAD=name    CHECKPOINT=dir   TIMEOUT=seconds  PYTHON=python3.x
  MODE=isolated|chained             ops on torch's tensors, or on the NPU's own results
  ARRAY=rtl|behavioural   behavioural: a model in place of the matrix array and the multiply-add
                   of the RTL, for long runs: faster, without assertions, no check of the array
  SHARDS=n JOBS=n  RESUME=1         the ops in parts, in several processes; the missing parts
  ALLOW_CPU=1      the CPU runs what the NPU cannot, and the ledger says so
END
