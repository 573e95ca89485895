# SPDX-License-Identifier: Apache-2.0
"""CXXRTL as a second simulator: npu_top through Yosys into C++, below the server of tb/sim."""
