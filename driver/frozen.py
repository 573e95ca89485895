# SPDX-License-Identifier: Apache-2.0
"""The base of every record that is read from a file or from another process."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Immutable; takes no unknown field and no value of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
