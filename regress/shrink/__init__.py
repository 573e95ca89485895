# SPDX-License-Identifier: Apache-2.0
"""From a failing op of a model to the smallest one that still fails, as a test of its own."""

from regress.shrink.search import Shrunk, shrink_job

__all__ = ["Shrunk", "shrink_job"]
