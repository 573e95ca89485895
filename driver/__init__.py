# SPDX-License-Identifier: Apache-2.0
"""The host side of the NPU: configuration, device memory, command ring, lowering, capture.

Imports nothing of `golden`, `tb` or `regress`; torch only in capture and the torch device.
"""
