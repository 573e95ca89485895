# SPDX-License-Identifier: Apache-2.0
"""Lines that both emitters of generated SystemVerilog and C++ write."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

from driver.isa.markdown import NOTICE


def camel(name: str) -> str:
    """MICRO_OP as MicroOp."""
    return "".join(part.capitalize() for part in name.lower().split("_"))


def sv_enum(name: str, bits: int, enum: type[IntEnum], prefix: str = "") -> Iterable[str]:
    """The type `name`_e. Its members start with `prefix`, or else with the name."""
    prefix = prefix or name.upper()
    yield f"  typedef enum logic [{bits - 1}:0] {{"
    yield ",\n".join(f"    {prefix}_{entry.name} = {bits}'d{entry.value}" for entry in enum)
    yield f"  }} {name}_e;"
    yield ""


def cpp_head() -> Iterable[str]:
    """A header up to the opened namespace."""
    yield "// SPDX-License-Identifier: Apache-2.0"
    yield f"// {NOTICE}"
    yield "// clang-format off"
    yield "#pragma once"
    yield ""
    yield "#include <array>"
    yield "#include <cstdint>"
    yield ""
    yield "namespace npu::isa {"
    yield ""


def cpp_enum(name: str, enum: type[IntEnum], bits: int = 32) -> Iterable[str]:
    """The class `name`, stored in so many bits."""
    yield f"enum class {name} : std::uint{bits}_t {{"
    for entry in enum:
        yield f"  k{camel(entry.name)} = {entry.value},"
    yield "};"
    yield ""
