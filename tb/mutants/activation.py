# SPDX-License-Identifier: Apache-2.0
"""From the name of a mutant, as MUTANT= takes it, to the build that it is in and the argument that
activates it: one of the planted (tb.mutants.table) or of the sampled (tb.mutants.sampled)."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path

from driver.errors import InputError
from driver.filelist import FILELIST, read_filelist
from tb.mutants.expression import Site, sites_of, write_sources
from tb.mutants.sampled import NAMES, SAMPLED, parse_sampled, sample
from tb.mutants.table import PLANTED
from tb.sim.spec import BUILD_ROOT, PLANTED_SET

_NONE = "-none"
_FEW = 8


def sound_of(name: str) -> str:
    """What MUTANT= takes for a mutant's build with none active. InputError: no such mutant."""
    return f"{mutant_set(name)}{_NONE}"


def is_sound(name: str) -> bool:
    """Whether it names a build with none active."""
    return name.endswith(_NONE)


def mutant_set(name: str) -> str:
    """The set that a mutant is of: all in one build. InputError: there is no such mutant."""
    if name == f"{PLANTED_SET}{_NONE}":
        return PLANTED_SET
    if name.startswith(SAMPLED):
        return parse_sampled(name).set_name
    if name not in PLANTED:
        raise InputError("command line", "mutant", name, _like(name))
    return PLANTED_SET


def _like(name: str) -> str:
    """What could be meant by a name that no mutant has: a few of more than a hundred."""
    same = [other for other in PLANTED if name.partition("-")[0] == other.partition("-")[0]]
    near = same or get_close_matches(name, PLANTED, cutoff=0.4) or list(PLANTED)
    return f"one of docs/mutants.md, as {', '.join(near[:_FEW])}, or {NAMES}"


def with_mutant(variant: str, name: str | None) -> str:
    """The build of `variant` that a mutant is in; itself without one. InputError likewise."""
    return variant if name is None else f"{variant}-{mutant_set(name)}"


def activation(name: str | None) -> tuple[str, ...]:
    """Arguments of the simulator that activate a mutant; none without one. InputError likewise."""
    if name is None:
        return ()
    mutant_set(name)
    return () if is_sound(name) else (f"+{_plusarg(name)}",)


@cache
def selectable(name: str) -> Mapping[str, Site]:
    """The mutants of a set, by the argument that activates each, without its plus."""
    if name == PLANTED_SET:
        sites = sites_of({key: one.mutant for key, one in PLANTED.items()})
    else:
        sites = sample(parse_sampled(f"{name}-1").seed)
    return {_plusarg(key): site for key, site in sites.items()}


def site_of(name: str) -> Site:
    """Where a mutant is. InputError: there is no such mutant, or none is active."""
    if is_sound(name):
        raise InputError("command line", "mutant", name, "one that is somewhere in the RTL")
    return selectable(mutant_set(name))[_plusarg(name)]


@cache
def rewritten_sources(name: str) -> Mapping[Path, Path]:
    """Source of the RTL → the same with every mutant of a set selectable."""
    written = write_sources(selectable(name), BUILD_ROOT.parent / "mutants" / name)
    listed = {path.name: path for path in read_filelist(FILELIST)}
    return {listed[file]: path for file, path in written.items()}


def _plusarg(name: str) -> str:
    return f"mutant.{name}."  # the full stop: none is the beginning of another
