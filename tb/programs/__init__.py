# SPDX-License-Identifier: Apache-2.0
"""PyTorch programs on device "npu" as tests."""
