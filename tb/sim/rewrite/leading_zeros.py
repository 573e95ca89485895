# SPDX-License-Identifier: Apache-2.0
"""Counts the zeros above a leading one with the processor's own instruction.

The RTL counts by halves, five steps that each wait for the one before: of a multiply-add's chain
that is the longest part (ADR 22). g++ turns its built-in count into one vector instruction, where
the processor has AVX-512; for others the steps stay, as the loop around them would be no vector
code any more. Only these very steps are replaced, as Verilator writes them: a package with another
function keeps its own. Knows Verilator's C++, compiles nothing.
"""

from __future__ import annotations

import re
from pathlib import Path

from tb.sim.rewrite.file_list import replace_text

_STEPS = """
    N__word = (IData)((N__value >> 0x1fU));
    N__zeros = ((0U == N__word) ? 0x00000021U : 1U);
    N__word = ((0U == N__word) ? ((IData)(N__value) << 1U) : N__word);
    N__step = ((0x00010000U > N__word) ? 0x00000010U : 0U);
    N__zeros = (N__zeros + N__step);
    N__word = (N__word << (0x0000001fU & N__step));
    N__step = ((0x01000000U > N__word) ? 8U : 0U);
    N__zeros = (N__zeros + N__step);
    N__word = (N__word << (0x0000001fU & N__step));
    N__step = ((0x10000000U > N__word) ? 4U : 0U);
    N__zeros = (N__zeros + N__step);
    N__word = (N__word << (0x0000001fU & N__step));
    N__step = ((0x40000000U > N__word) ? 2U : 0U);
    N__zeros = (N__zeros + N__step);
    N__word = (N__word << (0x0000001fU & N__step));
    N__Vfuncout = (N__zeros - VL_SHIFTR_III(32,32,32, N__word, 0x0000001fU));
"""
"""Of npu_fp_pkg::leading_zeros63; N is Verilator's name of one call."""
_COUNT = r"""
#ifdef __AVX512CD__
\g<name>__Vfuncout = __builtin_clzll(\g<name>__value << 1U | 1U);
#else
\g<0>
#endif
"""
"""The same number for each of the 2⁶⁴ words: bit 63 does not count, and 0 has 63."""


def _pattern() -> re.Pattern[str]:
    """The steps, whatever lies between their words."""
    words = [re.escape(word) for word in re.findall(r"\w+|\S", _STEPS)]
    first, *others = [re.sub(r"^N(?=__)", r"(?P=name)", word) for word in words]
    head = first.replace("(?P=name)", r"(?P<name>__Vfunc_leading_zeros63__\d+)")
    return re.compile(r"\s*".join([head, *others]))


_PATTERN = _pattern()


def count_leading_zeros(generated: Path) -> int:
    """Rewrite the model in the folder; in how many places it counts."""
    return replace_text(generated.glob("*.cpp"), _PATTERN, _COUNT)
