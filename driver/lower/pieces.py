# SPDX-License-Identifier: Apache-2.0
"""Views cut into pieces of few enough dimensions for a descriptor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from driver.isa import MAX_RANK
from driver.runtime.views import TensorView, collapse


def pieces(
    views: Sequence[TensorView], apart: int | None = None
) -> Iterator[tuple[list[TensorView], int]]:
    """The views, all of one rank, cut so that descriptors can hold them, with the place of `apart`.

    Sizes are equal except in dimension `apart`, which is not merged. The other dimensions are
    merged where possible; a view with still too many dimensions becomes several pieces.
    """
    merged, apart = _merged(views, apart)
    rank = merged[0].rank
    if rank <= MAX_RANK:
        yield merged, -1 if apart is None else apart
        return
    looped = min((at for at in range(rank) if at != apart), key=lambda at: merged[0].sizes[at])
    if apart is not None and looped < apart:
        apart -= 1
    for index in range(merged[0].sizes[looped]):
        yield from pieces([view.selected(looped, index) for view in merged], apart)


def _merged(views: Sequence[TensorView], apart: int | None) -> tuple[list[TensorView], int | None]:
    """Neighbouring dimensions as one where all views allow it; those before and after `apart`."""
    groups = [range(views[0].rank)]
    if apart is not None:
        groups = [range(apart), range(apart, apart + 1), range(apart + 1, views[0].rank)]
    sizes: list[tuple[int, ...]] = [() for _ in views]
    strides: list[tuple[int, ...]] = [() for _ in views]
    place = None
    for number, group in enumerate(groups):
        span = slice(group.start, group.stop)
        if apart is not None and number == 1:
            place = len(sizes[0])
            own, steps = (
                [view.sizes[span] for view in views],
                [view.strides[span] for view in views],
            )
        else:
            shape, walks = collapse(views[0].sizes[span], *(view.strides[span] for view in views))
            if shape == (1,) and apart is not None:
                continue
            own, steps = [shape] * len(views), list(walks)
        sizes = [a + b for a, b in zip(sizes, own, strict=True)]
        strides = [a + b for a, b in zip(strides, steps, strict=True)]
    merged = [view.reshaped(*walk) for view, *walk in zip(views, sizes, strides, strict=True)]
    return merged, place
