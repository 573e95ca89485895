# SPDX-License-Identifier: Apache-2.0
"""Elements that the pictures of a run share."""

from __future__ import annotations

from html import escape


def text(x: float, y: float, words: str, *, size: int = 12, anchor: str = "start") -> str:
    """Words at a place, in pixels."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="#22262e">{escape(words)}</text>'
    )
