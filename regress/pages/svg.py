# SPDX-License-Identifier: Apache-2.0
"""SVG as text: escaped elements, and the colours of every picture.

Owns colours, so that all pictures agree with style.css. Knows nothing of what they show.
"""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup, escape

VIRIDIS = ("#fde725", "#90d743", "#35b779", "#21918c", "#31688e", "#443983", "#440154")
"""From little to much: perceived in order with every kind of colour vision, and in grey."""
SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Okabe and Ito's colours; always beside a label or a shape of their own."""
DASHES = ("", "6 3", "2 3", "8 3 2 3", "1 2", "10 4", "4 4")

Part = Markup | str


def tag(name: str, *content: Part, **attributes: object) -> Markup:
    """An element. `stroke_width=2` is stroke-width="2"; numbers are short; None is left out."""
    words = [
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _short(value))
        for key, value in attributes.items()
        if value is not None
    ]
    inside = Markup("").join(escape(part) for part in content)
    return Markup("<{0}{1}>{2}</{0}>").format(name, Markup("").join(words), inside)


def picture(width: float, height: float, label: str, content: Iterable[Part]) -> Markup:
    """A whole picture that scales with the page; `label` says in words what it shows."""
    return tag(
        "svg",
        tag("title", label),
        *content,
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {_short(width)} {_short(height)}",
        role="img",
        style=f"max-width:{_short(width)}px",
        aria_label=label,
    )


def text(x: float, y: float, words: object, **attributes: object) -> Markup:
    """A line of text in the page's own colour."""
    return tag("text", str(words), x=x, y=y, **attributes)


def line(start: tuple[float, float], end: tuple[float, float], **attributes: object) -> Markup:
    """A straight line between two points."""
    (x1, y1), (x2, y2) = start, end
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, **attributes)


def viridis(share: float) -> str:
    """The colour of a value between 0 (little) and 1 (much)."""
    step = round(min(max(share, 0.0), 1.0) * (len(VIRIDIS) - 1))
    return VIRIDIS[step]


def on(colour: str) -> str:
    """Black or white, whichever is easier to read on a colour (WCAG's relative luminance)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    luminance = sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))
    return "#000000" if luminance > 0.179 else "#ffffff"


def _short(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
