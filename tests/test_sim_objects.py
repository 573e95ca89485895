# SPDX-License-Identifier: Apache-2.0
"""Compiled files by content: what an object depends on."""

from __future__ import annotations

from pathlib import Path

from tb.sim.objects import ObjectStore, Unit
from tb.sim.toolchain import find_compiler


def test_an_object_depends_on_the_version_of_the_headers_it_may_include(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("int a() { return 1; }\n")
    unit = Unit(Path("a.cpp"), (), "", tmp_path)
    stores = [
        ObjectStore(tmp_path / "objects", find_compiler(), version, 1)
        for version in ("5.48", "5.49")
    ]
    objects = [store.compile([unit])[0] for store in stores]
    assert objects[0] != objects[1]
    assert [store.compiled for store in stores] == [1, 1]
