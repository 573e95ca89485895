# SPDX-License-Identifier: Apache-2.0
"""Reports of a regression as static HTML: failure pages and the dashboard.

Reads a store and the files of its jobs; runs nothing and decides nothing (regress.triage does).
"""
