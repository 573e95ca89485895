# SPDX-License-Identifier: Apache-2.0
"""`npu-cosim test`: the steps, and what runs them."""
