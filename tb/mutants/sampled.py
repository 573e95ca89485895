# SPDX-License-Identifier: Apache-2.0
"""A random sample of mutants: a seed chooses them among all sites of the RTL.

`sampled-SEED-NUMBER` names one. The mutants of a seed share a build, and no two of them overlap. An
edit of the RTL changes few of them: what counts is the text of a site, not where it stands.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import Final

from driver.errors import InputError
from tb.mutants.expression import Site

SAMPLED: Final = "sampled-"
PER_SEED: Final = 30
"""Mutants of one seed, and of one build."""
NAMES: Final = f"{SAMPLED}SEED-NUMBER with a number of 1 to {PER_SEED}, or none"
_NAME: Final = re.compile(rf"({SAMPLED}(0|[1-9]\d{{0,8}}))-([1-9]\d?|none)")


@dataclass(frozen=True)
class SampledName:
    """What `sampled-SEED-NUMBER` says."""

    set_name: str
    seed: int
    number: int
    """0: none of them."""


def parse_sampled(name: str) -> SampledName:
    """InputError for what is no such name."""
    match = _NAME.fullmatch(name)
    number = 0 if match is None or match[3] == "none" else int(match[3])
    if match is None or number > PER_SEED:
        raise InputError("command line", "mutant", name, NAMES)
    return SampledName(match[1], int(match[2]), number)


@cache
def sample(seed: int) -> dict[str, Site]:
    """The mutants of a seed by name, in the order of their numbers."""
    from tb.mutants.sites import find_sites  # noqa: PLC0415 - slang is for development only

    seen: Counter[tuple[str, str, str]] = Counter()
    ranked = []
    for site in find_sites():
        text = (site.file.name, site.right, site.wrong)
        seen[text] += 1
        ranked.append((_rank(seed, *text, str(seen[text])), site))
    chosen: list[Site] = []
    for _, site in sorted(ranked):
        if len(chosen) == PER_SEED:
            break
        if not any(_overlap(site, other) for other in chosen):
            chosen.append(site)
    return {f"{SAMPLED}{seed}-{number}": site for number, site in enumerate(chosen, start=1)}


def _rank(seed: int, *text: str) -> str:
    return hashlib.sha256("\0".join((str(seed), *text)).encode()).hexdigest()


def _overlap(one: Site, other: Site) -> bool:
    return one.file == other.file and one.start < other.end and other.start < one.end


def line_of(site: Site) -> int:
    """Its line in the file, from 1."""
    return site.file.read_bytes()[: site.start].count(b"\n") + 1
