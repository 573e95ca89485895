# SPDX-License-Identifier: Apache-2.0
"""Stimulus: sequences and the random packets that they send."""
