# SPDX-License-Identifier: Apache-2.0
"""The rows of a model's run summed up by layer: cycles, traffic over the least possible, drift.

A layer is the module path down to its number (`model.layers.3`), or the module itself where there
is none. Pure: rows in, sums and a table out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.table import Table

from driver.results import Drift, OpRow
from regress.console import plain_table

_DEPTH = 2
"""Parts of a module path that has no number."""


@dataclass(frozen=True)
class LayerSummary:
    """Sums over the ops of a layer. None where no RTL ran."""

    model: str
    name: str
    mode: str
    ops: int
    cycles: int | None
    macs: int
    dram_bytes: int | None
    compulsory_bytes: int
    bound_by: str
    """What most of its cycles were spent on."""
    drift: Drift | None
    """Of its last result, in a chained run."""

    @property
    def macs_per_cycle(self) -> float | None:
        """Over all its cycles, those without products included."""
        return self.macs / self.cycles if self.cycles else None

    @property
    def traffic(self) -> float | None:
        """Bytes moved over the least that its ops have to move."""
        if self.dram_bytes is None or not self.compulsory_bytes:
            return None
        return self.dram_bytes / self.compulsory_bytes


def layer_name(module: str) -> str:
    """`model.layers.3.mlp` → `model.layers.3`; `model.norm.x` → `model.norm`."""
    parts = module.split(".")
    for at, part in enumerate(parts):
        if part.isdecimal():
            return ".".join(parts[: at + 1])
    return ".".join(parts[:_DEPTH])


def layers(rows: Iterable[OpRow]) -> list[LayerSummary]:
    """One for each layer, mode and pass through it, in the order of the run; ops of no model have
    none."""
    of_models = (row for row in rows if row.source and row.where != "cpu")
    return [_sum(key, list(group)) for key, group in groupby(of_models, key=_key)]


def _key(row: OpRow) -> tuple[str, str, str]:
    model, _, module = row.module.partition(":")
    return model, layer_name(module), "isolated" if row.drift is None else "chained"


def _sum(key: tuple[str, str, str], rows: Sequence[OpRow]) -> LayerSummary:
    model, name, mode = key
    measured = [row for row in rows if row.cycles is not None]
    bound: Counter[str] = Counter()
    for row in measured:
        bound[row.bound_by or ""] += row.cycles or 0
    return LayerSummary(
        model=model,
        name=name,
        mode=mode,
        ops=len(rows),
        cycles=sum(row.cycles or 0 for row in measured) if measured else None,
        macs=sum(row.macs or 0 for row in rows),
        dram_bytes=sum(row.dram_bytes or 0 for row in measured) if measured else None,
        compulsory_bytes=sum(row.compulsory_bytes or 0 for row in rows),
        bound_by=bound.most_common(1)[0][0] if bound else "",
        drift=rows[-1].drift,
    )


def layer_table(found: Sequence[LayerSummary]) -> Table:
    """One line per layer; columns that say nothing are left out."""
    columns: list[tuple[str, bool, list[str]]] = [
        ("layer", False, [f"{layer.model}:{layer.name}".rstrip(":") for layer in found]),
        ("mode", False, [layer.mode for layer in found]),
        ("ops", True, [str(layer.ops) for layer in found]),
        ("cycles", True, [_grouped(layer.cycles) for layer in found]),
        ("MAC/cycle", True, [_decimal(layer.macs_per_cycle, 1) for layer in found]),
        ("bound by", False, [layer.bound_by for layer in found]),
        ("DRAM bytes", True, [_grouped(layer.dram_bytes) for layer in found]),
        ("÷ least", True, [_decimal(layer.traffic, 3) for layer in found]),
        ("drift: largest", True, [_drift(layer.drift, "max_abs") for layer in found]),
        ("relative", True, [_drift(layer.drift, "max_rel") for layer in found]),
        ("cosine", True, [_drift(layer.drift, "cosine") for layer in found]),
    ]
    table = plain_table()
    shown = [column for column in columns if any(column[2])]
    for name, right, _ in shown:
        table.add_column(name, justify="right" if right else "left", no_wrap=True)
    for index in range(len(found)):
        table.add_row(*(texts[index] for _, _, texts in shown))
    return table


def _grouped(value: int | None) -> str:
    return "" if value is None else f"{value:,}".replace(",", " ")


def _decimal(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _drift(drift: Drift | None, field: str) -> str:
    if drift is None:
        return ""
    value = float(getattr(drift, field))
    return f"{value:.7f}" if field == "cosine" else f"{value:.1e}"
