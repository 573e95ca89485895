# SPDX-License-Identifier: Apache-2.0
# Variables, and the flags of each command. Made by `make gen` from regress/options.py.
VARIABLES := TEST WORKLOAD CAPSULE ID TIER BENCH PYTHON CONFIG SEED WAVES OUT BACKEND OP TIMEOUT MODE ALLOW_CPU ARRAY VARIANT CUSTOM_OPS SIM MUTANT RECORD FPGA FPU CHECKPOINT DTYPE DEVICE VECTORS SHARDS JOBS RESUME ONLY_FAILED DRY_RUN FILTER RESEED BUDGET SCHEDULER STORE PLAN GOOD BAD
export $(VARIABLES)
SWITCHES := ALLOW_CPU DRY_RUN FPGA ONLY_FAILED RECORD RESUME
run_flags = $(strip $(call flag,CONFIG,config) $(call flag,SEED,seed) $(call flag,WAVES,waves) $(call flag,OUT,out) $(call flag,BACKEND,backend) $(call flag,OP,op) $(call flag,TIMEOUT,timeout) $(call flag,MODE,mode) $(call switch,ALLOW_CPU,allow-cpu) $(call flag,ARRAY,array) $(call flag,VARIANT,variant) $(call flag,SIM,sim) $(call flag,MUTANT,mutant) $(call flag,CUSTOM_OPS,custom-ops) $(call flag,FPU,fpu) $(call flag,FILTER,filter) $(call flag,CHECKPOINT,checkpoint) $(call flag,SHARDS,shards) $(call flag,JOBS,jobs) $(call switch,RESUME,resume))
replay_flags = $(strip $(call flag,CONFIG,config) $(call flag,SEED,seed) $(call flag,WAVES,waves) $(call flag,OUT,out) $(call flag,BACKEND,backend) $(call flag,OP,op) $(call flag,TIMEOUT,timeout) $(call flag,MODE,mode) $(call switch,ALLOW_CPU,allow-cpu) $(call flag,ARRAY,array) $(call flag,VARIANT,variant) $(call flag,SIM,sim) $(call flag,MUTANT,mutant) $(call flag,CUSTOM_OPS,custom-ops) $(call flag,FPU,fpu))
capture_flags = $(strip $(call flag,SEED,seed) $(call flag,CHECKPOINT,checkpoint) $(call flag,DTYPE,dtype) $(call flag,DEVICE,device) $(call flag,OUT,out))
unit_flags = $(strip $(call flag,VECTORS,vectors) $(call flag,SEED,seed))
bench_flags = $(strip $(call flag,OUT,out))
op-survey_flags = $(strip $(call flag,DTYPE,dtype) $(call flag,SEED,seed) $(call flag,JOBS,jobs) $(call switch,RECORD,record))
synth_flags = $(strip $(call flag,CONFIG,config) $(call flag,OUT,out) $(call switch,RECORD,record) $(call switch,FPGA,fpga))
power_flags = $(strip $(call flag,CONFIG,config) $(call flag,OUT,out))
nightly_flags = $(strip $(call switch,RESUME,resume) $(call switch,ONLY_FAILED,only-failed) $(call switch,DRY_RUN,dry-run) $(call flag,FILTER,filter) $(call flag,RESEED,reseed) $(call flag,BUDGET,budget) $(call flag,JOBS,jobs) $(call flag,SCHEDULER,scheduler) $(call flag,STORE,store) $(call flag,OUT,out))
reproduce_flags = $(strip $(call flag,OP,op) $(call flag,STORE,store) $(call flag,OUT,out))
waves_flags = $(strip $(call flag,OP,op) $(call flag,STORE,store) $(call flag,OUT,out))
shrink_flags = $(strip $(call flag,OP,op) $(call flag,STORE,store) $(call flag,OUT,out))
triage_flags = $(strip $(call flag,PLAN,plan) $(call flag,STORE,store) $(call flag,OUT,out))
bisect_flags = $(strip $(call flag,GOOD,good) $(call flag,BAD,bad) $(call flag,OP,op) $(call flag,STORE,store) $(call flag,OUT,out))
baseline_flags = $(strip $(call flag,PLAN,plan) $(call flag,STORE,store) $(call flag,OUT,out))
report_flags = $(strip $(call flag,PLAN,plan) $(call flag,STORE,store) $(call flag,OUT,out))
run_takes := TEST CONFIG SEED WAVES OUT BACKEND OP TIMEOUT MODE ALLOW_CPU ARRAY VARIANT SIM MUTANT CUSTOM_OPS FPU FILTER CHECKPOINT SHARDS JOBS RESUME
replay_takes := CAPSULE CONFIG SEED WAVES OUT BACKEND OP TIMEOUT MODE ALLOW_CPU ARRAY VARIANT SIM MUTANT CUSTOM_OPS FPU
capture_takes := WORKLOAD SEED CHECKPOINT DTYPE DEVICE OUT
unit_takes := TEST VECTORS SEED
bench_takes := BENCH OUT
op-survey_takes := DTYPE SEED JOBS RECORD
synth_takes := CONFIG OUT RECORD FPGA
power_takes := CONFIG OUT
nightly_takes := RESUME ONLY_FAILED DRY_RUN FILTER RESEED BUDGET JOBS SCHEDULER STORE OUT
reproduce_takes := ID OP STORE OUT
waves_takes := ID OP STORE OUT
shrink_takes := ID OP STORE OUT
triage_takes := PLAN STORE OUT
bisect_takes := ID GOOD BAD OP STORE OUT
baseline_takes := TIER PLAN STORE OUT
report_takes := PLAN STORE OUT
