# SPDX-License-Identifier: Apache-2.0
"""Bench of the memory controller and the COPY/FILL engine."""
