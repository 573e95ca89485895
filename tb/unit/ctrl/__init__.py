# SPDX-License-Identifier: Apache-2.0
"""Bench of the command processor: registers, queues, recovery, and packets against docs/isa.md."""
