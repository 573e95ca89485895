# SPDX-License-Identifier: Apache-2.0
"""Passes over the C++ that Verilator generates, so that it compiles or runs in less time."""
