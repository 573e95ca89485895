# SPDX-License-Identifier: Apache-2.0
"""From a failing op of a model to the smallest one that still fails, as a test of its own."""

from regress.failures.shrink.search import ShrinkResult, shrink_job

__all__ = ["ShrinkResult", "shrink_job"]
