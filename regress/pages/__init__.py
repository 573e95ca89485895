# SPDX-License-Identifier: Apache-2.0
"""Reports of a regression as static HTML: failure pages and the dashboard.

Renders what regress.analysis has found; runs nothing and decides nothing. Only night_commands
imports it.
"""
