# SPDX-License-Identifier: Apache-2.0
"""Bench of the GATHER/SCATTER engine behind the memory controller."""
