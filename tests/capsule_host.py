# SPDX-License-Identifier: Apache-2.0
"""Capsules on disk whose documents are changed, and signed again so that the hash fits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from driver.capture.capsule import content_hash

Change = Callable[[dict[str, Any]], object]


def edit(folder: Path, change: Change, *, resign: bool = True) -> None:
    """Change capsule.json, with a hash that fits unless told otherwise."""
    file = folder / "capsule.json"
    fields = json.loads(file.read_text())
    change(fields)
    if resign:
        fields["hash"] = content_hash(fields)
    file.write_text(json.dumps(fields))
