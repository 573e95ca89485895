# SPDX-License-Identifier: Apache-2.0
"""torch's own op samples (op_db) on the cmodel: what `npu-cosim op-survey` starts as a process."""
