# SPDX-License-Identifier: Apache-2.0
"""Unit benches: one part of the RTL in a C++ program of its own, without cocotb."""
