# SPDX-License-Identifier: Apache-2.0
"""Regressions as a service: plan, store, runner and schedulers. Starts `tb`, never imports it."""
