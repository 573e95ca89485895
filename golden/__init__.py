# SPDX-License-Identifier: Apache-2.0
"""What the NPU should have computed: an exact model, CPU torch, and the bound between the two.

Imports the driver but never its lowering: a bug there must not cancel out.
"""
