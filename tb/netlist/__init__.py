# SPDX-License-Identifier: Apache-2.0
"""The RTL as a netlist, by Yosys: what it costs in cells, and the way into a second simulator."""
