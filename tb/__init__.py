# SPDX-License-Identifier: Apache-2.0
"""The bench: simulator, bus agents, environment, sequences and tests. Imported by nothing."""
