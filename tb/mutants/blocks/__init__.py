# SPDX-License-Identifier: Apache-2.0
"""Rows of the table of planted mutants, by block of the hardware."""
