# SPDX-License-Identifier: Apache-2.0
"""Emits everything that follows from the register map rtl/csr/npu_csr.rdl.

`render()` is pure: RTL, driver constants and the reference page as texts, to be written by
`npu-cosim gen` and compared by `gen-check`. `write_html()` writes PeakRDL's browsable pages (8 MB,
so they are built on demand and not committed). Knows nothing of what the registers do.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from peakrdl_html import HTMLExporter
from peakrdl_regblock import RegblockExporter
from peakrdl_regblock.cpuif.axi4lite import AXI4Lite_Cpuif_flattened
from peakrdl_regblock.udps import ALL_UDPS
from systemrdl.compiler import RDLCompiler
from systemrdl.node import AddrmapNode, FieldNode, RegNode

from driver.errors import unwritable
from regress.folder import fresh, locked

_ROOT = Path(__file__).resolve().parents[1]
_SOURCE = "rtl/csr/npu_csr.rdl"
_NOTICE = f"Generated from {_SOURCE} by `make gen`. Do not edit."
_ADDRESS_BITS = 16
_WORD_BITS = 32


def compile_registers(source: Path = _ROOT / _SOURCE) -> AddrmapNode:
    """The elaborated register map; RDLCompileError, with the place printed, when it is wrong."""
    compiler = RDLCompiler()
    for definition in ALL_UDPS:
        compiler.register_udp(definition)
    compiler.compile_file(str(source))
    return compiler.elaborate().top


def render() -> dict[str, str]:
    """Path from the project's root → text, for every generated file of the register map."""
    top = compile_registers()
    texts = {f"rtl/csr/gen/{name}": text for name, text in _regblock(top).items()}
    texts["rtl/csr/gen/npu_csr.h"] = "\n".join(_cpp(top)) + "\n"
    texts["driver/isa/csr.py"] = "\n".join(_python(top)) + "\n"
    texts["docs/registers.md"] = "\n".join(_markdown(top)) + "\n"
    return texts


def write_html(directory: Path) -> None:
    """PeakRDL's browsable reference; open index.html in `directory`.

    InputError when the folder cannot be written, or holds something else under one of the names.
    """
    with tempfile.TemporaryDirectory(prefix="npu-") as made:
        HTMLExporter(generate_source_links=False).export(compile_registers(), made)
        names = [path.name for path in Path(made).iterdir()]
        with locked(directory, "OUT"), fresh(directory, names):
            try:
                for path in Path(made).iterdir():
                    (shutil.copytree if path.is_dir() else shutil.copy)(path, directory / path.name)
            except (OSError, shutil.Error) as error:
                expected = "a folder that can be written"
                raise unwritable(directory, "OUT", error, expected) from error


def _regblock(top: AddrmapNode) -> dict[str, str]:
    """File name → SystemVerilog of the register block and its package."""
    exporter = RegblockExporter()
    with tempfile.TemporaryDirectory() as directory:
        exporter.export(
            top,
            directory,
            cpuif_cls=AXI4Lite_Cpuif_flattened,
            reuse_hwif_typedefs=False,
            address_width=_ADDRESS_BITS,
            default_reset_activelow=True,
            err_if_bad_addr=True,
        )
        head = f"// SPDX-License-Identifier: Apache-2.0\n// {_NOTICE}\n"
        return {
            path.name: head + path.read_text(encoding="utf-8")
            for path in sorted(Path(directory).glob("*.sv"))
        }


def _registers(top: AddrmapNode) -> Iterator[RegNode]:
    """The registers in order of address; an array once, as its first element."""
    for node in top.children(unroll=False):
        if isinstance(node, RegNode):
            if node.is_array:
                node.current_idx = [0]
            yield node


def _words(register: RegNode) -> Iterable[tuple[str, int]]:
    """(name, offset) of each 32-bit word of a register: a 64-bit one is NAME_LO and NAME_HI."""
    if register.size * 8 == _WORD_BITS:
        return [(register.inst_name, register.address_offset)]
    return [
        (f"{register.inst_name}_LO", register.address_offset),
        (f"{register.inst_name}_HI", register.address_offset + _WORD_BITS // 8),
    ]


def _parts(register: RegNode) -> Iterator[tuple[FieldNode, int]]:
    """Fields that are only a part of their register's word, each with its mask."""
    for field in register.fields():
        if field.width < _WORD_BITS:
            yield field, ((1 << field.width) - 1) << field.low


def _count(register: RegNode) -> int:
    """The number of elements of a one-dimensional register array."""
    assert register.array_dimensions is not None
    return register.array_dimensions[0]


def _text(node: RegNode | FieldNode, name: str) -> str:
    """A property of prose, fit for a table; empty when it is not there."""
    return _fit(str(node.get_property(name) or ""))


def _fit(text: str) -> str:
    """On one line, as a row of a table is."""
    return " ".join(text.split()).replace("|", "\\|")


def _python(top: AddrmapNode) -> Iterable[str]:
    yield "# SPDX-License-Identifier: Apache-2.0"
    yield f"# {_NOTICE}"
    yield '"""Register offsets, and mask and lowest bit of each field. See docs/registers.md."""'
    yield ""
    for register in _registers(top):
        for name, offset in _words(register):
            yield f"{name} = 0x{offset:03X}"
        if register.is_array:
            yield f"{register.inst_name}_COUNT = {_count(register)}"
        for field, mask in _parts(register):
            prefix = f"{register.inst_name}_{field.inst_name.upper()}"
            yield f"{prefix}_MASK = 0x{mask:08X}"
            yield f"{prefix}_LSB = {field.low}"
    yield ""
    names = ", ".join(f'"{name}": {name}' for reg in _registers(top) for name, _ in _words(reg))
    yield "OFFSETS: dict[str, int] = {"
    yield from (f"    {entry}," for entry in names.split(", "))
    yield "}"
    yield '"""Name → offset of every 32-bit register; an array by its first element."""'
    yield ""
    step = _WORD_BITS // 8
    yield "ARRAYS: dict[str, range] = {"
    for name in (register.inst_name for register in _registers(top) if register.is_array):
        yield f'    "{name}": range({name}, {name} + {step} * {name}_COUNT, {step}),'
    yield "}"
    yield '"""Name → offsets of the elements of every array."""'
    yield ""
    yield "REGISTERS: frozenset[int] = frozenset(OFFSETS.values()).union(*ARRAYS.values())"
    yield '"""Offsets of all 32-bit registers, each element of an array among them."""'


def _cpp(top: AddrmapNode) -> Iterable[str]:
    yield "// SPDX-License-Identifier: Apache-2.0"
    yield f"// {_NOTICE}"
    yield "// For benches in C++: offsets; mask, lowest bit and named values of each field."
    yield "#pragma once"
    yield ""
    yield "namespace npu::csr {"
    yield ""
    for register in _registers(top):
        for name, offset in _words(register):
            yield f"inline constexpr unsigned k{_camel(name)} = 0x{offset:03x};"
    for register in _registers(top):
        yield from _cpp_fields(register)
    yield ""
    yield "}  // namespace npu::csr"


def _cpp_fields(register: RegNode) -> Iterable[str]:
    for field, mask in _parts(register):
        name = f"k{_camel(register.inst_name)}{_camel(field.inst_name)}"
        yield f"inline constexpr unsigned {name}Mask = 0x{mask:08x};"
        yield f"inline constexpr unsigned {name}Lsb = {field.low};"
        for member in field.get_property("encode") or ():
            yield f"inline constexpr unsigned {name}{_camel(member.name)} = {member.value};"


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _access(field: FieldNode) -> str:
    """How software sees a field: ro, rw, or what writing a one does."""
    onwrite = field.get_property("onwrite")
    if onwrite is not None:
        return {"woset": "w1s", "woclr": "w1c"}[onwrite.name]
    if field.get_property("singlepulse"):
        return "w1"
    return "rw" if field.is_sw_writable else "ro"


def _markdown(top: AddrmapNode) -> Iterable[str]:
    yield f"<!-- {_NOTICE} -->"
    yield "# Registers"
    yield ""
    yield " ".join(str(top.get_property("desc")).split())
    yield ""
    yield "Access: ro read-only, rw read and write, w1 writing 1 acts, w1s writing 1 sets what"
    yield "the hardware clears, w1c writing 1 clears. After reset all writable fields are zero."
    yield ""
    yield "| offset | register | bits | field | access | meaning |"
    yield "|---|---|---|---|---|---|"
    for register in _registers(top):
        yield from _markdown_register(register)


def _markdown_register(register: RegNode) -> Iterable[str]:
    places = "<br>".join(f"`0x{offset:03X}` {name}" for name, offset in _words(register))
    if register.is_array:
        count = _count(register)
        last = register.address_offset + (count - 1) * register.size
        places = f"`0x{register.address_offset:03X}`…`0x{last:03X}` {register.inst_name}[{count}]"
    desc = _text(register, "desc")
    title = _text(register, "name") + (f". {desc}" if desc else "")
    yield f"| {places} | **{title.rstrip('.')}** | | | | |"
    for field in register.fields():
        bits = str(field.low) if field.width == 1 else f"{field.high}:{field.low}"
        meaning = _text(field, "desc")
        encoding = field.get_property("encode")
        if encoding is not None:
            members = (f"{m.value} {m.name}: {_fit(m.rdl_desc)}" for m in encoding)
            meaning += "<br>" + "<br>".join(members)
        yield f"| | | {bits} | `{field.inst_name}` | {_access(field)} | {meaning} |"
