# SPDX-License-Identifier: Apache-2.0
"""What an arithmetic bench is made of. Knows nothing of vectors or results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tb.unit.model import BUILD_ROOT, Bench, build_model, rtl_sources

_FOLDER = Path(__file__).parent
_HDL = _FOLDER.parent / "hdl"
_RTL_FOLDERS = ("fpu",)


def build_bench(
    test: str, instead: Mapping[str, Path] | None = None, root: Path = BUILD_ROOT
) -> Path:
    """The program of bench `test`, built now unless it exists.

    `instead` maps names of packages of rtl/fpu to files that take their place.
    InputError: no such package, sources that do not elaborate. InfrastructureError: no tools, a
    builder that never ends.
    """
    bench = Bench(
        name=test,
        folder=_FOLDER,
        top=test,
        sources=(*rtl_sources(_RTL_FOLDERS, instead), _HDL / f"{test}.sv"),
        programs=(f"{test}.cpp", "bench.cpp", "testfloat.cpp"),
        prefix=f"V{test}",
        optimise="-O3",
    )
    return build_model(bench, root)
