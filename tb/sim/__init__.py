# SPDX-License-Identifier: Apache-2.0
"""Building and running the Verilated device: knows pins and processes, not packets or tensors."""
