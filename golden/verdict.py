# SPDX-License-Identifier: Apache-2.0
"""What the judge says of an op, and what it says where there is nothing to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from driver.results import Blame, Failure
from golden.bounds import Expectation
from golden.calls import Result
from golden.comparison import Comparison
from golden.formats import Bits, Floats


@dataclass(frozen=True)
class Verdict:
    """What the judge says of one op."""

    blame: Blame
    rtl_mismatches: int
    """Elements whose bits differ between RTL and cmodel."""
    comparison: Comparison
    failure: Failure | None
    """The element that a failed verdict is about, without its cycle; None: nothing was found."""
    reaches: tuple[Floats | None, ...]
    """For each output how far each element may be from torch's; see golden.comparison.reach."""
    by_integers: bool
    """The blame rests on the element computed by integers, not on bounds."""
    reference_outside_bound: bool = False
    """What was found is torch's alone: its own answer is outside its bound, the NPU's is not."""
    undecided: bool = False
    """No element of some result has a bound, and nothing else was found: that is no pass of a test,
    and no fault of anybody."""

    @property
    def elements_compared(self) -> int:
        """Elements for which a bound is known."""
        return self.comparison.elements_compared

    @property
    def wrong(self) -> Failure | None:
        """What was found, unless it is torch's alone."""
        return None if self.undecided or self.reference_outside_bound else self.failure

    @property
    def ok(self) -> bool:
        """Elements were compared, and nothing was found."""
        return self.blame == "none" and self.elements_compared > 0


def of_missing(found: Sequence[Result], made: Sequence[Bits | None], left: int) -> Verdict | None:
    """The verdict on a result that the device does not give. The last `left` are arguments that the
    op writes to, which not every record has."""
    for number, answer in enumerate(found[: len(found) - left]):
        if answer is not None and answer.numel() and (number >= len(made) or made[number] is None):
            detail = "no result, torch has one"
            return _refused("lowering", number, (answer.numel(), 0), len(made), detail)
    return None


def of_other_shape(found: Sequence[Result], made: Sequence[Bits | None]) -> Verdict | None:
    """The verdict on a result of another shape than torch's."""
    for number, (answer, bits) in enumerate(zip(found, made, strict=False)):
        if answer is not None and bits is not None and bits.shape != tuple(answer.shape):
            detail = f"sizes {list(bits.shape)}, torch has {list(answer.shape)}"
            counts = answer.numel(), bits.size
            return _refused("lowering", number, counts, len(made), detail)
    return None


def without_rule(
    found: Sequence[Result],
    made: Sequence[Bits | None],
    expected: Sequence[Expectation | None],
) -> Verdict | None:
    """The verdict on a result that no rule says anything about."""
    for number, (answer, bits) in enumerate(zip(found, made, strict=False)):
        if answer is not None and bits is not None and bits.size and expected[number] is None:
            counts = answer.numel(), bits.size
            detail = "the op's bound says nothing about this result"
            return _refused("precision", number, counts, len(made), detail)
    return None


def _refused(
    blame: Blame, number: int, counts: tuple[int, int], results: int, detail: str
) -> Verdict:
    """Of result `number`, as a whole: told are torch's and the NPU's counts of elements."""
    expected, actual = counts
    failure = Failure(
        element=(),
        tile=None,
        expected_bits=f"{expected:#x}",
        actual_bits=f"{actual:#x}",
        expected=float(expected),
        actual=float(actual),
        cycle=None,
        detail=detail,
        output=number,
    )
    return Verdict(blame, 0, Comparison(), failure, (None,) * results, by_integers=False)
