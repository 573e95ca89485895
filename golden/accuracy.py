# SPDX-License-Identifier: Apache-2.0
"""How far the vector programs of functions are from the true functions, in ULP.

Runs them on the C++ model: on every fp16 and bf16 number, and on fp32 numbers of all magnitudes.
Truth is float64, whose own error is below 2^-27 ULP of fp32. An ULP is the spacing of the result's
format at the true value. Knows no torch, no packets and no page: regress.accuracy prints.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from driver.isa import image
from driver.isa.micro import Reduce, VectorProgram
from driver.isa.programs import PROGRAMS
from golden import _cmodel
from golden.functions import Function
from golden.programs import run_words

Words = npt.NDArray[np.uint32]
Floats = npt.NDArray[np.float64]

_CHUNK = 1 << 20
_EDGE = 4096
"""Numbers looked at on either side of every end of a range."""
_RUN = 256
"""Neighbours in one run of the search for a step in the wrong direction."""


@dataclass(frozen=True)
class AccuracyFormat:
    """A floating-point format and how its numbers meet fp32, as words of 32 bits."""

    name: str
    fraction_bits: int
    least_exponent: int
    greatest_exponent: int
    widen: Callable[[Words, Words], None] | None = None
    narrow: Callable[[Words, Words], None] | None = None

    def ulp(self, true: Floats) -> Floats:
        """Spacing of the format's numbers at these values."""
        _, exponent = np.frexp(np.where(true == 0, 2.0**self.least_exponent, true))
        exponent = np.clip(exponent - 1, self.least_exponent, self.greatest_exponent)
        spacing: Floats = np.ldexp(1.0, exponent - self.fraction_bits)
        return spacing

    def result(self, words: Words) -> Words:
        """fp32 results as the format stores them, widened again."""
        if self.narrow is None or self.widen is None:
            return words
        narrow, wide = np.empty_like(words), np.empty_like(words)
        self.narrow(words, narrow)
        self.widen(narrow, wide)
        return wide

    def everything(self) -> Words:
        """Every number of a 16-bit format, ascending, as fp32."""
        assert self.widen is not None
        wide = np.empty(1 << 16, np.uint32)
        self.widen(np.arange(1 << 16, dtype=np.uint32), wide)
        values = wide.view(np.float32)
        finite = wide[np.isfinite(values)]
        return finite[np.lexsort((~np.signbit(finite.view(np.float32)), finite.view(np.float32)))]


FP32 = AccuracyFormat("fp32", 23, -126, 127)
FP16 = AccuracyFormat("fp16", 10, -14, 15, _cmodel.widen_fp16, _cmodel.narrow_fp16)
BF16 = AccuracyFormat("bf16", 7, -126, 127, _cmodel.widen_bf16, _cmodel.narrow_bf16)


@dataclass(frozen=True)
class Accuracy:
    """What was measured of one function in one format."""

    program: str
    code: str
    """Digest of the program's instructions: a measurement of other instructions is stale."""
    cycles: int
    """Instructions per element."""
    points: int
    max_ulp: float
    at: tuple[float, ...]
    """Operands where the error is largest."""
    monotonic: bool | None
    """None where the function itself is not."""


def digest(program: VectorProgram) -> str:
    """Of what the program computes of one element."""
    return image.digest(replace(program, reduce=Reduce.NONE))[:12]


def run(program: VectorProgram, *sources: Words) -> Words:
    """The program's results on fp32 words."""
    (out,) = run_words(program, sources)
    return out


def measure(function: Function, form: AccuracyFormat, points: int, seed: int = 1) -> Accuracy:
    """The largest error over the function's domain; ∞ if ∞, NaN or the sign of a 0 is wrong."""
    program = PROGRAMS[function.program(form.name)]
    worst, at, count = 0.0, (0.0,) * program.sources, 0
    for operands in _operands(function, form, points, seed):
        values = [_values(operand) for operand in operands]
        inside = function.inside(values[0])
        with np.errstate(all="ignore"):  # overflow and NaN are as meant
            true = function.true(*values)
        got = _values(form.result(run(program, *operands)))
        error = np.where(inside, errors(form, got, true), 0.0)
        count += int(np.count_nonzero(inside))
        place = int(np.argmax(error))
        if error[place] > worst:
            worst, at = float(error[place]), tuple(float(value[place]) for value in values)
    monotonic = _is_monotonic(function, form, points, seed)
    return Accuracy(program.name, digest(program), len(program.code), count, worst, at, monotonic)


def _values(words: Words) -> Floats:
    with np.errstate(invalid="ignore"):  # a signalling NaN
        return words.view(np.float32).astype(np.float64)


def errors(form: AccuracyFormat, got: Floats, true: Floats) -> Floats:
    """|got − true| in ULP; ∞ counts as the first number beyond the range, NaN only as NaN.

    A zero for a true value of zero has to have its sign.
    """
    beyond = np.ldexp(1.0, form.greatest_exponent + 1)
    with np.errstate(invalid="ignore"):
        true_in, got_in = (np.clip(values, -beyond, beyond) for values in (true, got))
        error = np.abs(got_in - true_in) / form.ulp(true_in)
    error = np.where(np.isinf(true) & (got != true), np.inf, error)
    wrong_zero = (true == 0) & (np.signbit(got) != np.signbit(true))
    error = np.where(np.isnan(true) != np.isnan(got), np.inf, np.where(wrong_zero, np.inf, error))
    return np.where(np.isnan(true) & np.isnan(got), 0.0, error)


def _operands(
    function: Function, form: AccuracyFormat, points: int, seed: int
) -> Iterator[tuple[Words, ...]]:
    if function.pairs is not None:
        rng = np.random.default_rng(seed)
        for start in range(0, points, _CHUNK):
            pair = function.pairs(rng, min(_CHUNK, points - start))
            with np.errstate(over="ignore"):
                single = [operand.astype(np.float32).view(np.uint32) for operand in pair]
            yield tuple(form.result(operand) for operand in single)
    elif form is FP32:
        for chunk in _fp32_numbers(function, points):
            yield (chunk,)
    else:
        specials = np.array([np.inf, -np.inf, np.nan], np.float32).view(np.uint32)
        yield (np.concatenate([form.everything(), specials]),)


def _fp32_numbers(function: Function, points: int) -> Iterator[Words]:
    """Every n-th pattern, hence all magnitudes alike; and all patterns around the ends."""
    ends = np.array(
        [0.0, 1.0, 2.0**-126, 3.4028235e38, np.inf, *function.domain, *function.ends], np.float32
    )
    around = np.arange(-_EDGE, _EDGE, dtype=np.int64)
    edges = (ends.view(np.uint32).astype(np.int64)[:, None] + around).ravel()
    for sign in (0, 0x8000_0000):
        yield (np.unique(np.clip(edges, 0, 0x7FFF_FFFF)) | sign).astype(np.uint32)
    step = 2 * 0x7F80_0000 // points | 1  # odd: even numbers alone would be better than all are
    for sign in (0, 0x8000_0000):
        for start in range(0, 0x7F80_0000, step * _CHUNK):
            end = min(start + step * _CHUNK, 0x7F80_0000)
            yield (np.arange(start, end, step, dtype=np.int64) | sign).astype(np.uint32)


def _is_monotonic(function: Function, form: AccuracyFormat, points: int, seed: int) -> bool | None:
    """Whether no neighbours in the function's monotonic part go the other way."""
    if function.monotonic is None:
        return None
    low, high = (np.float32(end) for end in function.monotonic)
    program = PROGRAMS[function.program(form.name)]
    if form is FP32:
        rng = np.random.default_rng(seed)
        runs = max(1, points // 8 // _RUN)
        first = rng.integers(0, 0x7F80_0000 - _RUN, runs)[:, None] + np.arange(_RUN)
        signs = rng.integers(0, 2, runs)[:, None] << 31
        rows = (first | signs).astype(np.uint32)
    else:
        rows = form.everything()[None]
    values = rows.view(np.float32)
    got = _values(form.result(run(program, rows.ravel()))).reshape(rows.shape)
    inside = (values >= low) & (values <= high)
    rising = np.sign(np.diff(values.astype(np.float64), axis=1)) * function.direction
    with np.errstate(invalid="ignore"):  # between infinities
        wrong = np.diff(got, axis=1) * rising < 0
    both = inside[:, 1:] & inside[:, :-1]
    assert both.any(), f"{function.name}: no neighbours in {function.monotonic}"
    return not bool(np.any(wrong & both))
