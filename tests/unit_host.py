# SPDX-License-Identifier: Apache-2.0
"""What the tests of the block benches share."""

from __future__ import annotations

from typing import Any

import pytest


def other_width(*values: int) -> Any:
    """Parameters of a bench at a bus width that is not the default's: a build of its own, so the
    ci tier runs it."""
    return pytest.param(*values, marks=pytest.mark.broad)
