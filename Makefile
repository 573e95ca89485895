# SPDX-License-Identifier: Apache-2.0
# The thin face of the command line `npu-cosim` (regress/cli.py). It makes .venv when that is missing
# or outdated and hands everything on. make turns every failure into its own exit status 2: scripts
# that tell a failed verdict from bad input call .venv/bin/npu-cosim.

.DEFAULT_GOAL := $(if $(TEST)$(SIM)$(OP),run,help)
MAKEFLAGS += --no-print-directory

SUPPORTED_SIMS := verilator
ifneq ($(filter-out $(SUPPORTED_SIMS),$(SIM)),)
  $(error SIM=$(SIM) is not supported; supported: $(SUPPORTED_SIMS))
endif

# Values reach the command line through the environment: no quoting, whatever is in them.
export MODE ALLOW_CPU ARRAY FPU TEST CONFIG SEED WAVES OUT BACKEND OP TIMEOUT WORKLOAD DTYPE DEVICE CHECKPOINT CAPSULE VECTORS BENCH PYTHON \
  ID PLAN TIER GOOD BAD FILTER RESEED BUDGET SCHEDULER STORE SHARDS JOBS RESUME ONLY_FAILED DRY_RUN

ON := 1 yes true on YES TRUE ON Yes True On
OFF := 0 no false off NO FALSE OFF No False Off
unclear = $(if $(word 2,$($(1))),$($(1)),$(filter-out $(ON) $(OFF),$($(1))))
$(foreach name,ALLOW_CPU RESUME ONLY_FAILED DRY_RUN,$(if $(call unclear,$(name)),$(error \
  $(name)=$($(name)): expected 1, yes, true, on or 0, no, false, off)))

CLI := .venv/bin/npu-cosim
flag = $(if $($(1)),--$(2) "$$$(1)")
switch = $(if $(filter $(ON),$($(1))),--$(2))
RUN_FLAGS = $(call flag,CONFIG,config) $(call flag,SEED,seed) $(call flag,WAVES,waves) \
  $(call flag,OUT,out) $(call flag,BACKEND,backend) $(call flag,OP,op) $(call flag,TIMEOUT,timeout) \
  $(call flag,MODE,mode) $(call flag,ARRAY,array) $(call flag,FPU,fpu) $(call switch,ALLOW_CPU,allow-cpu)
SHARD_FLAGS = $(call flag,SHARDS,shards) $(call flag,JOBS,jobs) $(call switch,RESUME,resume)
TIER_FLAGS = $(call flag,FILTER,filter) $(call flag,RESEED,reseed) $(call flag,BUDGET,budget) \
  $(call flag,JOBS,jobs) $(call flag,SCHEDULER,scheduler) $(call flag,STORE,store) \
  $(call flag,OUT,out) $(call switch,RESUME,resume) $(call switch,ONLY_FAILED,only-failed) \
  $(call switch,DRY_RUN,dry-run)
STORED = $(call flag,OUT,out) $(call flag,STORE,store)

.PHONY: help run smoke ci nightly weekly replay waves shrink bisect triage report baseline capture unit tests test lint format types gen gen-check regs bench optable architectures setup lock clean

help:
	@sh regress/help.sh

setup:
	@sh regress/setup.sh

run: setup
	@$(CLI) run $(RUN_FLAGS) $(SHARD_FLAGS) $(call flag,CHECKPOINT,checkpoint) -- "$$TEST"

smoke ci nightly weekly: setup
	@$(CLI) nightly $(TIER_FLAGS) -- $@

replay: setup
	@$(CLI) $(if $(ID),reproduce $(call flag,OP,op) $(STORED) -- "$$ID",replay $(RUN_FLAGS) -- "$$CAPSULE")

waves shrink: setup
	@$(CLI) $@ $(call flag,OP,op) $(STORED) -- "$$ID"

bisect: setup
	@$(CLI) bisect $(call flag,OP,op) $(STORED) $(call flag,GOOD,good) $(call flag,BAD,bad) -- "$$ID"

triage report: setup
	@$(CLI) $@ $(STORED) $(call flag,PLAN,plan)

baseline: setup
	@$(CLI) baseline $(STORED) $(call flag,PLAN,plan) $(if $(TIER),-- "$$TIER")

capture: setup
	@$(CLI) capture $(call flag,SEED,seed) $(call flag,CHECKPOINT,checkpoint) \
	  $(call flag,DTYPE,dtype) $(call flag,DEVICE,device) $(call flag,OUT,out) -- "$$WORKLOAD"

unit: setup
	@$(CLI) unit $(call flag,SEED,seed) $(call flag,VECTORS,vectors) -- "$$TEST"

bench: setup
	@$(CLI) bench $(call flag,OUT,out) -- $$BENCH

optable: setup
	@$(CLI) optable $(call flag,JOBS,jobs)

architectures: setup
	@$(CLI) architectures

tests test lint format types gen gen-check regs: setup
	@$(CLI) $@

lock: setup
	@.venv/bin/python -m regress.lock

clean:
	@rm -rf build && find out -mindepth 1 -maxdepth 1 ! -name nightly -exec rm -rf {} + 2>/dev/null; \
	  echo "removed build/ and out/, but for the results in out/nightly; .venv stays"
