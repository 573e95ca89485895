# SPDX-License-Identifier: Apache-2.0
"""Tables of the vector engine: coefficients by segment of |a|, which the boot content brings along.

SEGMENT finds an element's segment; operands of the instructions behind it read columns of that row
(docs/numerics.md, Tables). The words are in the files next to this one, one segment per line;
tests/table_fits.py writes them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TABLE_COLUMNS = 8
"""Columns that a table may have."""
MAX_TABLES = 8
MAX_SEGMENTS = 256
MAX_TABLE_ROWS = 512
"""Rows of all tables."""

_MAGNITUDE = 0x7FFF_FFFF


@dataclass(frozen=True)
class Table:
    """Coefficients by segment. Segment 0 begins at 0, segment i at the bits `first` + i·2^shift.

    With shift 23 − n there are 2^n segments per octave of |a|.
    """

    name: str
    text: str
    first: int
    shift: int
    rows: tuple[tuple[int, ...], ...]
    """A 32-bit word per segment and column."""
    odd: tuple[int, ...] = ()
    """Columns whose sign bit is inverted where that of the element is set."""

    def __post_init__(self) -> None:
        assert 1 <= len(self.rows) <= MAX_SEGMENTS and 1 <= self.columns <= TABLE_COLUMNS
        assert all(len(row) == self.columns for row in self.rows), self.name
        assert all(0 <= word < 1 << 32 for row in self.rows for word in row), self.name
        assert set(self.odd) <= {*range(self.columns)}
        assert 0 <= self.first <= self.limit <= _MAGNITUDE and 0 <= self.shift < 32

    @property
    def columns(self) -> int:
        """How many a row has."""
        return len(self.rows[0])

    @property
    def last(self) -> int:
        """Number of the last segment."""
        return len(self.rows) - 1

    @property
    def limit(self) -> int:
        """Bits of the last number of the last segment."""
        return self.first + (len(self.rows) << self.shift) - 1

    @property
    def odd_mask(self) -> int:
        """Bit c: column c is odd."""
        return sum(1 << column for column in self.odd)


def words_file(name: str) -> Path:
    """Where a table's words are."""
    return Path(__file__).parent / f"{name}.txt"


def parse_rows(text: str) -> tuple[tuple[int, ...], ...]:
    """The rows of a file of words: hexadecimal, a segment per line; # begins a comment."""
    lines = (line.partition("#")[0].split() for line in text.splitlines())
    return tuple(tuple(int(word, 16) for word in line) for line in lines if line)


def _table(name: str, text: str, first: int, shift: int, odd: Sequence[int]) -> Table:
    rows = parse_rows(words_file(name).read_text("ascii"))
    return Table(name, text, first, shift, rows, tuple(odd))


TABLES: tuple[Table, ...] = (
    _table("tanh", "−m, then tanh m + …: a cubic in |a| − m", 0x3D18_0000, 19, range(1, 5)),
    _table(
        "erf",
        "−m, then erf m + …: of degree 4 in |a| − m; 1 if m = 0",
        0x3D70_0000,
        19,
        range(1, 7),
    ),
    _table(
        "sigmoid_16",
        "−m, then 1 ÷ (1 + e^−x): a cubic in |a| − m, |a| = x·32/27 + 244.5625",
        0x4300_0000,
        16,
        (),
    ),
    _table(
        "logistic",
        "−m, then 2⁶⁰ ÷ (1 + e^−x): of degree 6 in x − m, |a| = 122 − x",
        0x42D2_0000,
        16,
        (),
    ),
)
"""By number."""
TABLE_NUMBER = {table.name: number for number, table in enumerate(TABLES)}
TABLE_ROW = tuple(sum(len(table.rows) for table in TABLES[:n]) for n in range(len(TABLES)))
"""Where each table begins among the rows of all."""
TABLE_ROWS = sum(len(table.rows) for table in TABLES)
assert len(TABLES) <= MAX_TABLES and TABLE_ROWS <= MAX_TABLE_ROWS


def table_bytes() -> bytes:
    """All tables, for a digest."""
    return b"".join(
        struct.pack("<4I", table.first, table.shift, table.columns, table.odd_mask)
        + b"".join(struct.pack(f"<{table.columns}I", *row) for row in table.rows)
        for table in TABLES
    )
