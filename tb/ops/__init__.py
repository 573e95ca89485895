# SPDX-License-Identifier: Apache-2.0
"""Whole ops on a device pair: RTL beside cmodel, judged against torch. No cocotb here."""
