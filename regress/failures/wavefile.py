# SPDX-License-Identifier: Apache-2.0
"""Reads a VCD or FST file: the changes of a signal, and the cycles at which something happened.

Owns what a cycle is in the file's time: cycle n is the rising edge at 2n − 1 ns, and what counts in
it is the value just before. Knows no signal by name.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pywellen

from driver.errors import InputError

PERIOD_PS = 2000
_EXPONENT_PS = -12
_EXPECTED = "waves in VCD or FST"
_Times = npt.NDArray[np.int64]


@dataclass(frozen=True)
class SignalTrace:
    """A signal: at `times[i]` (ps, ascending) it takes `values[i]` and keeps it."""

    path: str
    width: int
    times: _Times
    values: tuple[int, ...]

    def before_edge(self, cycle: int) -> int | None:
        """The value that cycle `cycle` sees; None before the first known one."""
        at = int(np.searchsorted(self.times, edge_ps(cycle), side="left")) - 1
        return None if at < 0 else self.values[at]


class WaveFile:
    """An open file of waves."""

    def __init__(self, path: Path) -> None:
        """InputError when it is no file of waves, or one of no time."""
        if not path.is_file():
            raise InputError(path, "file", "missing", _EXPECTED)
        self._path = path
        with _named(path):
            self._file = pywellen.Waveform(str(path))
            self._vars = {var.full_name: var for var in self._file.all_vars()}
        scale = self._file.timescale
        exponent = _EXPONENT_PS if scale is None else scale.unit.to_exponent()
        factor = 1 if scale is None else scale.factor
        self._unit_ps = factor * 10.0 ** ((exponent or _EXPONENT_PS) - _EXPONENT_PS)

    def signals(self) -> list[list[str]]:
        """Each signal as all of its full names: a port has one at either side."""
        found: dict[str, list[str]] = {}
        for name, var in self._vars.items():
            found.setdefault(str(var.signal_id), []).append(name)
        return list(found.values())

    def trace(self, path: str) -> SignalTrace | None:
        """The signal of that full name; None when the file has none."""
        var = self._vars.get(path)
        if var is None:
            return None
        with _named(self._path):
            changes = var.tv
        times = np.array([round(time * self._unit_ps) for time, _ in changes], np.int64)
        values = tuple(value if isinstance(value, int) else 0 for _, value in changes)
        return SignalTrace(path, var.bitwidth or 1, times, values)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """InputError with the file for what its reader says: signals are read only when asked for."""
    try:
        yield
    except (RuntimeError, OSError, ValueError) as error:
        raise InputError(path, "file", error, _EXPECTED) from error
    except BaseException as error:
        # What the library did not foresee, as in a file cut short by a full disk, is its panic.
        if type(error).__name__ != "PanicException":
            raise
        raise InputError(path, "file", error, _EXPECTED) from error


def edge_ps(cycle: int) -> int:
    """Time of the rising edge that is cycle `cycle`."""
    return cycle * PERIOD_PS - PERIOD_PS // 2


def cycle_after(time_ps: int) -> int:
    """The first cycle whose edge sees what happened at a time."""
    return (time_ps + PERIOD_PS // 2) // PERIOD_PS + 1


def first_together(traces: list[SignalTrace], from_cycle: int = 0) -> int | None:
    """First cycle, not before `from_cycle`, that sees all these signals other than 0."""
    times = np.unique(np.concatenate([[edge_ps(from_cycle) - 1], *(t.times for t in traces)]))
    for start, end in zip(times, [*times[1:], None], strict=True):
        cycle = max(cycle_after(int(start)), from_cycle)
        # A change at the very edge is seen by the next one.
        if (end is None or edge_ps(cycle) <= end) and all(t.before_edge(cycle) for t in traces):
            return cycle
    return None
