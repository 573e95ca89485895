# SPDX-License-Identifier: Apache-2.0
# The thin face of the command line `npu-cosim` (regress/cli.py). It makes .venv when that is missing
# or outdated and hands everything on. make turns every failure into its own exit status 2: scripts
# that tell a failed verdict from bad input call .venv/bin/npu-cosim.

MAKEFLAGS += --no-print-directory

# Values reach the command line through the environment: no quoting, whatever is in them.
include regress/options.mk

# Names such as CONFIG and FILTER are common: what the environment says of them decides nothing.
$(foreach name,$(filter-out PYTHON,$(VARIABLES)),$(if $(filter environment,$(origin $(name))),\
  $(warning $(name) of the environment is ignored: make … $(name)='…')$(eval undefine $(name))))

.DEFAULT_GOAL := $(if $(TEST)$(SIM)$(OP),run,help)

SUPPORTED_SIMS := verilator cxxrtl
ifneq ($(filter-out $(SUPPORTED_SIMS),$(SIM)),)
  $(error SIM=$(SIM) is not supported; supported: $(SUPPORTED_SIMS))
endif

ON := 1 yes true on YES TRUE ON Yes True On
OFF := 0 no false off NO FALSE OFF No False Off
unclear = $(if $(word 2,$($(1))),$($(1)),$(filter-out $(ON) $(OFF),$($(1))))
$(foreach name,$(SWITCHES),$(if $(call unclear,$(name)),$(error \
  $(name)=$($(name)): expected 1, yes, true, on or 0, no, false, off)))

CLI := .venv/bin/npu-cosim
flag = $(if $($(1)),--$(2) "$$$(1)")
switch = $(if $(filter $(ON),$($(1))),--$(2))

# A variable that a target does not take is refused: whoever gave it believes that it counts. So is
# one that none takes, a misspelt name. make has variables of its own that begin like options.
from_command_line = $(strip $(foreach name,$(1),$(if $(findstring command,$(origin $(name))),$(name))))
unknown := $(call from_command_line,$(filter-out $(VARIABLES) -%,$(.VARIABLES)))
$(if $(unknown),$(error $(unknown): expected a variable that `make help` names))
takes_any := setup help clean
takes = $($(1)_takes) PYTHON
$(foreach tier,smoke ci nightly weekly,$(eval $(tier)_takes := $(nightly_takes)))
replay_takes := $(if $(ID),$(reproduce_takes),$(replay_takes))
given := $(call from_command_line,$(VARIABLES))
$(foreach goal,$(filter-out $(takes_any),$(or $(MAKECMDGOALS),$(.DEFAULT_GOAL))),\
  $(foreach name,$(filter-out $(call takes,$(goal)),$(given)),\
    $(error make $(goal) does not take $(name); it takes $(or $(strip $($(goal)_takes)),no variables))))

.PHONY: help synth power run smoke ci nightly weekly replay waves shrink bisect triage report baseline capture unit tests test lint format types gen gen-check regs bench op-survey architectures setup lock clean

help:
	@cat regress/help.txt regress/variables.txt

setup:
	@sh regress/setup.sh

run: setup
	@$(CLI) run $(run_flags) -- "$$TEST"

smoke ci nightly weekly: setup
	@$(CLI) nightly $(nightly_flags) -- $@

replay: setup
	@$(CLI) $(if $(ID),reproduce $(reproduce_flags) -- "$$ID",replay $(replay_flags) -- "$$CAPSULE")

waves shrink bisect: setup
	@$(CLI) $@ $($@_flags) -- "$$ID"

triage report op-survey synth power lint: setup
	@$(CLI) $@ $($@_flags)

baseline: setup
	@$(CLI) baseline $(baseline_flags) $(if $(TIER),-- "$$TIER")

capture: setup
	@$(CLI) capture $(capture_flags) -- "$$WORKLOAD"

unit: setup
	@$(CLI) unit $(unit_flags) -- "$$TEST"

bench: setup
	@$(CLI) bench $(bench_flags) -- $$BENCH

tests test format types gen gen-check regs architectures: setup
	@$(CLI) $@

lock: setup
	@.venv/bin/python -m regress.lock

clean:
	@$(or $(PYTHON),python3) -I regress/clean.py
