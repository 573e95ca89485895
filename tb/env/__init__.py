# SPDX-License-Identifier: Apache-2.0
"""The UVM environment: predictor (cmodel), scoreboard, memories, and how tests run in it."""
