# SPDX-License-Identifier: Apache-2.0
"""Bench of the vector engine behind the memory controller."""
