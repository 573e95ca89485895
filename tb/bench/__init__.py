# SPDX-License-Identifier: Apache-2.0
"""Measurements of the figures of merit, one file per figure: `measure(rounds, note)` -> Value.

Started as `python -m tb.bench NAME ROUNDS` by `npu-cosim bench`.
"""
