# SPDX-License-Identifier: Apache-2.0
"""Ops that move elements of images: padding by the image's own elements, shuffles, windows as
columns, nearest neighbours. Every bit is torch's, whose own coordinates are part of the answer."""

from __future__ import annotations

from golden.bounds.exact import moved
from golden.bounds.expectation import Rule

_NAMES = (
    *(f"{kind}_pad{dims}d" for kind in ("reflection", "replication") for dims in (1, 2, 3)),
    *(f"upsample_nearest{dims}d" for dims in (1, 2, 3)),
    *(f"_upsample_nearest_exact{dims}d" for dims in (1, 2, 3)),
    *("pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "native_channel_shuffle", "im2col"),
)
RULES: dict[str, Rule] = dict.fromkeys(_NAMES, moved)
