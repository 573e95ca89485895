# SPDX-License-Identifier: Apache-2.0
"""Emits the SystemVerilog package, the C++ header and the reference page from the tables.

`render()` is pure; writing and comparing belong to `npu-cosim gen` and `gen-check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum

from driver.isa import layout, types

_NOTICE = "Generated from driver/isa by `make gen`. Do not edit."

_STRUCTS: tuple[tuple[str, int, tuple[layout.Field, ...]], ...] = (
    ("packet", layout.PACKET_BYTES, layout.PACKET_FIELDS),
    ("descriptor", layout.DESCRIPTOR_BYTES, layout.DESCRIPTOR_FIELDS),
    ("completion", layout.COMPLETION_BYTES, layout.COMPLETION_FIELDS),
)
_ENUMS: tuple[tuple[str, int, type[IntEnum]], ...] = (
    ("opcode", 32, types.Opcode),
    ("dtype", 4, types.DType),
    ("error", 4, types.ErrorCode),
    ("state", 2, types.State),
)


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.lower().split("_"))


def _sv_enum(name: str, bits: int, enum: type[IntEnum]) -> Iterable[str]:
    yield f"  typedef enum logic [{bits - 1}:0] {{"
    entries = [f"    {name.upper()}_{entry.name} = {bits}'d{entry.value}" for entry in enum]
    yield ",\n".join(entries)
    yield f"  }} {name}_e;"
    yield ""


def _sv_struct(name: str, fields: tuple[layout.Field, ...]) -> Iterable[str]:
    # A packed struct lists its most significant member first: the last byte of the line.
    yield f"  /// {name.capitalize()} as a 512-bit word, byte 0 in bits 7:0."
    yield "  typedef struct packed {"
    for field in reversed(fields):
        array = f" [{field.count - 1}:0]" if field.count > 1 else ""
        yield f"    logic{array} [{field.bits - 1}:0] {field.name};"
    yield f"  }} {name}_t;"
    yield ""


def _sv_flags() -> Iterable[str]:
    yield "  /// The flags word of a packet."
    yield "  typedef struct packed {"
    top = 32
    for field in sorted(layout.FLAG_FIELDS, key=lambda f: -f.lsb):
        gap = top - (field.lsb + field.width)
        if gap:
            yield f"    logic [{gap - 1}:0] reserved_{field.lsb + field.width};"
        vector = f" [{field.width - 1}:0]" if field.width > 1 else ""
        yield f"    logic{vector} {field.name.lower()};"
        top = field.lsb
    yield "  } flags_t;"
    yield ""


def _sv_operations() -> Iterable[str]:
    yield "  /// What an opcode may use; everything else in its packet must be zero."
    yield "  typedef struct packed {"
    yield "    logic known;"
    yield "    logic [31:0] flags;"
    yield "    logic src1;"
    yield "    logic src2;"
    yield "    logic dst;"
    yield f"    logic [{layout.PARAM_COUNT - 1}:0] params;"
    yield "  } usage_t;"
    yield ""
    yield "  function automatic usage_t opcode_usage(logic [31:0] opcode);"
    yield "    unique case (opcode)"
    for op in layout.OPERATIONS:
        uses = [f"1'b{int(name in op.addresses)}" for name in ("src1", "src2", "dst")]
        params = f"{layout.PARAM_COUNT}'h{(1 << len(op.params)) - 1:02x}"
        yield (
            f"      OPCODE_{op.opcode.name}: return '{{known: 1'b1, flags: 32'h{op.flag_mask:08x},"
        )
        yield f"        src1: {uses[0]}, src2: {uses[1]}, dst: {uses[2]}, params: {params}}};"
    yield "      default: return '0;"
    yield "    endcase"
    yield "  endfunction"
    yield ""


def _sv_dtypes() -> Iterable[str]:
    yield "  /// log2 of the bytes of one element; the type must exist."
    yield "  function automatic logic [1:0] dtype_log2_bytes(logic [3:0] dtype);"
    yield "    unique case (dtype)"
    for dtype, size in types.DTYPE_BYTES.items():
        yield f"      DTYPE_{dtype.name}: return 2'd{size.bit_length() - 1};"
    yield "      default: return 2'd0;"
    yield "    endcase"
    yield "  endfunction"
    yield ""
    yield "  function automatic logic dtype_known(logic [3:0] dtype);"
    yield f"    return dtype <= 4'd{max(types.DType)};"
    yield "  endfunction"
    yield ""
    yield "  /// Whether MATMUL has this pair of operand and result types."
    yield "  function automatic logic matmul_dtypes_ok(logic [3:0] src, logic [3:0] dst);"
    pairs = " ||\n           ".join(
        f"(src == DTYPE_{src.name} && dst == DTYPE_{dst.name})" for src, dst in types.MATMUL_DTYPES
    )
    yield f"    return {pairs};"
    yield "  endfunction"
    yield ""


def _sv() -> Iterable[str]:
    yield "// SPDX-License-Identifier: Apache-2.0"
    yield f"// {_NOTICE}"
    yield "/// Numbers and layouts of the instruction set; described in docs/isa.md."
    yield "package npu_isa_pkg;"
    yield f"  localparam logic [31:0] DEVICE_ID = 32'h{types.DEVICE_ID:08x};"
    yield f"  localparam logic [31:0] ISA_VERSION = 32'h{types.ISA_VERSION:08x};"
    yield f"  localparam int unsigned MAX_RANK = {layout.MAX_RANK};"
    yield f"  localparam int unsigned PARAM_COUNT = {layout.PARAM_COUNT};"
    yield ""
    for name, bits, enum in _ENUMS:
        yield from _sv_enum(name, bits, enum)
    for name, _, fields in _STRUCTS:
        yield from _sv_struct(name, fields)
    yield from _sv_flags()
    yield from _sv_operations()
    yield from _sv_dtypes()
    yield "  // Positions in param[]."
    for op in layout.OPERATIONS:
        for index, param in enumerate(op.params):
            yield f"  localparam int unsigned {op.opcode.name}_{param.upper()} = {index};"
    yield "endpackage"


def _cpp_enum(name: str, enum: type[IntEnum]) -> Iterable[str]:
    yield f"enum class {name} : std::uint32_t {{"
    for entry in enum:
        yield f"  k{_camel(entry.name)} = {entry.value},"
    yield "};"
    yield ""


def _cpp_struct(name: str, size: int, fields: tuple[layout.Field, ...]) -> Iterable[str]:
    yield f"struct {_camel(name)} {{"
    for field in fields:
        word = f"std::uint{field.bits}_t"
        kind = f"std::array<{word}, {field.count}>" if field.count > 1 else word
        yield f"  {kind} {field.name};  // {field.text}"
    yield "};"
    yield f"static_assert(sizeof({_camel(name)}) == {size});"
    yield ""


def _cpp_operations() -> Iterable[str]:
    yield "/// What an opcode may use; everything else in its packet must be zero."
    yield "struct Usage {"
    yield "  Opcode opcode;"
    yield "  std::uint32_t flags;"
    yield "  bool src1, src2, dst;"
    yield "  unsigned params;"
    yield "};"
    yield ""
    yield f"inline constexpr std::array<Usage, {len(layout.OPERATIONS)}> kOperations{{{{"
    for op in layout.OPERATIONS:
        uses = ", ".join(str(n in op.addresses).lower() for n in ("src1", "src2", "dst"))
        yield (
            f"    {{Opcode::k{_camel(op.opcode.name)}, 0x{op.flag_mask:08x}, "
            f"{uses}, {len(op.params)}}},"
        )
    yield "}};"
    yield ""
    yield "/// (operand type, result type) that MATMUL accepts."
    yield (
        f"inline constexpr std::array<std::array<DType, 2>, {len(types.MATMUL_DTYPES)}> "
        "kMatmulDTypes{{"
    )
    for src, dst in types.MATMUL_DTYPES:
        yield f"    {{{{DType::k{_camel(src.name)}, DType::k{_camel(dst.name)}}}}},"
    yield "}};"
    yield ""
    yield "/// Bytes of one element, indexed by DType."
    sizes = ", ".join(str(types.DTYPE_BYTES[dtype]) for dtype in types.DType)
    yield f"inline constexpr std::array<unsigned, {len(types.DType)}> kDTypeBytes{{{sizes}}};"
    yield ""
    yield "// Positions in Packet::param."
    for op in layout.OPERATIONS:
        for index, param in enumerate(op.params):
            yield (
                f"inline constexpr unsigned k{_camel(op.opcode.name)}{_camel(param)} = {index};"
            )
    yield ""


def _cpp() -> Iterable[str]:
    yield "// SPDX-License-Identifier: Apache-2.0"
    yield f"// {_NOTICE}"
    yield "// clang-format off"
    yield "#pragma once"
    yield ""
    yield "#include <array>"
    yield "#include <cstdint>"
    yield ""
    yield "namespace npu::isa {"
    yield ""
    yield f"inline constexpr unsigned kMaxRank = {layout.MAX_RANK};"
    yield f"inline constexpr unsigned kParamCount = {layout.PARAM_COUNT};"
    yield ""
    for name, enum in (
        ("Opcode", types.Opcode),
        ("DType", types.DType),
        ("ErrorCode", types.ErrorCode),
    ):
        yield from _cpp_enum(name, enum)
    for name, size, fields in _STRUCTS:
        yield from _cpp_struct(name, size, fields)
    yield "// Bits of Packet::flags."
    for field in layout.FLAG_FIELDS:
        name = _camel(field.name)
        yield f"inline constexpr std::uint32_t k{name}Mask = 0x{field.mask:08x};"
        yield f"inline constexpr unsigned k{name}Shift = {field.lsb};"
    yield ""
    yield from _cpp_operations()
    yield "}  // namespace npu::isa"


def _md_table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterable[str]:
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _md_struct(title: str, fields: tuple[layout.Field, ...]) -> Iterable[str]:
    yield f"## {title}: 64 bytes, little endian"
    yield ""
    rows = (
        (
            str(field.offset),
            f"`{field.name}{f'[{field.count}]' if field.count > 1 else ''}`",
            f"u{field.bits}",
            field.text,
        )
        for field in fields
    )
    yield from _md_table(("byte", "field", "type", "meaning"), rows)


def _md_operations() -> Iterable[str]:
    yield "## Operations"
    yield ""
    yield "Flags, addresses and parameters that an opcode does not use must be zero."
    yield ""
    rows = (
        (
            f"{op.opcode.value} {op.opcode.name}",
            ", ".join(op.flags) or "none",
            ", ".join(op.addresses) or "none",
            ", ".join(f"{i} {name}" for i, name in enumerate(op.params)) or "none",
            op.text,
        )
        for op in layout.OPERATIONS
    )
    yield from _md_table(("opcode", "flags", "addresses", "param", "effect"), rows)
    reserved = [op for op in types.Opcode if op not in layout.OPERATION_OF]
    names = ", ".join(f"{op.value} {op.name}" for op in reserved)
    yield f"Reserved numbers, BAD_OPCODE in this version: {names}."
    yield ""
    pairs = ", ".join(f"{src.name}→{dst.name}" for src, dst in types.MATMUL_DTYPES)
    yield f"MATMUL's pairs of operand and result type: {pairs}. `accumulate` reads dst in its type."
    yield ""
    yield "A direct operand (its DESC flag clear) is dense, row-major, of the operation's shape:"
    yield "MATMUL src1 [batch, M, K] (TRANS_A: [batch, K, M]), src2 [batch, K, N] (TRANS_B:"
    yield "[batch, N, K]), dst [batch, M, N]. A MATMUL descriptor has rank 3 and that same stored"
    yield "shape, with any strides. COPY with one descriptor: the direct side is dense with the"
    yield "descriptor's sizes. A destination that overlaps a source, or itself, gives undefined data."
    yield ""


def _md() -> Iterable[str]:
    yield f"<!-- {_NOTICE} -->"
    yield "# Instruction set"
    yield ""
    yield f"Version {types.ISA_VERSION >> 16}.{types.ISA_VERSION & 0xFFFF}. Arithmetic: numerics.md."
    yield "Registers: registers.md. All addresses are physical byte addresses."
    yield ""
    yield from _md_struct("Packet", layout.PACKET_FIELDS)
    yield "### Flags"
    yield ""
    rows = (
        (
            str(f.lsb) if f.width == 1 else f"{f.lsb + f.width - 1}:{f.lsb}",
            f"`{f.name}`",
            f.text,
        )
        for f in layout.FLAG_FIELDS
    )
    yield from _md_table(("bits", "flag", "meaning"), rows)
    yield from _md_operations()
    yield from _md_struct("Tensor descriptor", layout.DESCRIPTOR_FIELDS)
    yield "Descriptors lie on multiples of 64 bytes."
    yield ""
    yield from _md_struct("Completion record", layout.COMPLETION_FIELDS)
    yield "Written at CPL_BASE + (seq mod entries)·64 after the command's last write is acknowledged,"
    yield "for failed commands too. RING_HEAD, COMPLETED and the interrupt follow its own"
    yield "acknowledgement. A functional model leaves bytes "
    timing = layout.COMPLETION_TIMING_BYTES
    yield f"{timing.start} to {timing.stop - 1} zero: they tell time."
    yield ""
    yield "## Data types"
    yield ""
    rows = ((str(d.value), d.name, str(size)) for d, size in types.DTYPE_BYTES.items())
    yield from _md_table(("number", "type", "bytes"), rows)
    yield "## Errors"
    yield ""
    rows = ((str(code.value), f"`{code.name}`", text) for code, text in types.ERROR_TEXT.items())
    yield from _md_table(("code", "name", "meaning"), rows)
    yield "Checks run in this order and the first that fails is reported; nothing of a command is"
    yield "written before all its checks have passed:"
    yield ""
    for number, text in enumerate(layout.CHECK_ORDER, 1):
        yield f"{number}. {text}"
    yield ""
    yield "A bus error during execution leaves the command's destination unspecified. After any error"
    yield "the queue stops in state ERROR and nothing later executes. CTRL.error_ack drops all that is"
    yield "queued (RING_HEAD takes the value of RING_TAIL) and returns to IDLE; sequence numbers go on."
    yield "CTRL.soft_reset clears everything and restarts them at 0."


_EMITTERS: dict[str, Callable[[], Iterable[str]]] = {
    "rtl/pkg/npu_isa_pkg.sv": _sv,
    "golden/cmodel/npu_isa.h": _cpp,
    "docs/isa.md": _md,
}


def render() -> dict[str, str]:
    """Path from the project's root → text, for every generated file of the instruction set."""
    return {path: "\n".join(emit()) + "\n" for path, emit in _EMITTERS.items()}
