# SPDX-License-Identifier: Apache-2.0
"""Measurements of the figures of merit: each file here has `measure(rounds, note) -> Measurement`.

Started as `python -m tb.bench NAME ROUNDS` by `npu-cosim bench`.
"""
