# SPDX-License-Identifier: Apache-2.0
"""Reports of a regression as static HTML: failure pages and the dashboard.

Renders what regress.analysis and the commands have found; runs nothing and decides nothing. Only
night_commands and the commands with a page of their own (synthesis, power) import it.
"""
