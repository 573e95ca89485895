# SPDX-License-Identifier: Apache-2.0
"""Emits the SystemVerilog package, the C++ header and the reference page from the tables.

`render()` is pure; writing and comparing belong to `npu-cosim gen` and `gen-check`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntEnum

from driver.isa import generate_vector, layout, markdown, types
from driver.isa.emit import camel, cpp_enum, cpp_head, sv_enum
from driver.isa.markdown import NOTICE

_STRUCTS: tuple[tuple[str, int, tuple[layout.Field, ...]], ...] = (
    ("packet", layout.PACKET_BYTES, layout.PACKET_FIELDS),
    ("descriptor", layout.DESCRIPTOR_BYTES, layout.DESCRIPTOR_FIELDS),
    ("window", layout.WINDOW_BYTES, layout.WINDOW_FIELDS),
    ("completion", layout.COMPLETION_BYTES, layout.COMPLETION_FIELDS),
)
_ENUMS: tuple[tuple[str, int, type[IntEnum]], ...] = (
    ("opcode", 32, types.Opcode),
    ("dtype", 4, types.DType),
    ("error", 4, types.ErrorCode),
    ("device_state", 2, types.DeviceState),
)


def _sv_struct(name: str, size: int, fields: tuple[layout.Field, ...]) -> Iterable[str]:
    # A packed struct lists its most significant member first: the last byte of the line.
    yield f"  /// {name.capitalize()} as a {8 * size}-bit word, byte 0 in bits 7:0."
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
        params = f"{layout.PARAM_COUNT}'h{op.param_mask:02x}"
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
    for name, dtypes in (
        ("index", types.INDEX_DTYPES),
        ("scatter_add", types.SCATTER_ADD_DTYPES),
    ):
        yield f"  function automatic logic {name}_dtype_ok(logic [3:0] dtype);"
        yield f"    return {' || '.join(f'dtype == DTYPE_{dtype.name}' for dtype in dtypes)};"
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
    yield f"// {NOTICE}"
    yield "/// Numbers and layouts of the instruction set; described in docs/isa.md."
    yield "package npu_isa_pkg;"
    yield f"  localparam logic [31:0] DEVICE_ID = 32'h{types.DEVICE_ID:08x};"
    yield f"  localparam logic [31:0] ISA_VERSION = 32'h{types.ISA_VERSION:08x};"
    yield f"  localparam int unsigned MAX_RANK = {layout.MAX_RANK};"
    yield f"  localparam int unsigned WINDOW_RANK = {layout.WINDOW_RANK};"
    yield f"  localparam int unsigned WINDOW_GROUP = {layout.WINDOW_GROUP};"
    yield f"  localparam int unsigned PARAM_COUNT = {layout.PARAM_COUNT};"
    yield f"  localparam int unsigned INT4_ROWS = {types.INT4_ROWS};"
    yield f"  localparam int unsigned INT4_FIRST_GROUP = {types.INT4_GROUPS[0]};"
    yield ""
    for name, bits, enum in _ENUMS:
        yield from sv_enum(name, bits, enum)
    for name, size, fields in _STRUCTS:
        yield from _sv_struct(name, size, fields)
    yield from _sv_flags()
    yield from _sv_operations()
    yield from _sv_dtypes()
    yield "  // Positions in param[]."
    for op in layout.OPERATIONS:
        for param, index in op.param_at.items():
            yield f"  localparam int unsigned {op.opcode.name}_{param.upper()} = {index};"
    yield "endpackage"


def _cpp_struct(name: str, size: int, fields: tuple[layout.Field, ...]) -> Iterable[str]:
    yield f"struct {camel(name)} {{"
    for field in fields:
        word = f"std::uint{field.bits}_t"
        kind = f"std::array<{word}, {field.count}>" if field.count > 1 else word
        yield f"  {kind} {field.name};  // {field.text}"
    yield "};"
    yield f"static_assert(sizeof({camel(name)}) == {size});"
    yield ""


def _cpp_operations() -> Iterable[str]:
    yield "/// What an opcode may use; everything else in its packet must be zero."
    yield "struct Usage {"
    yield "  Opcode opcode;"
    yield "  std::uint32_t flags;"
    yield "  bool src1, src2, dst;"
    yield "  unsigned params;  // bit i: parameter i"
    yield "};"
    yield ""
    yield f"inline constexpr std::array<Usage, {len(layout.OPERATIONS)}> kOperations{{{{"
    for op in layout.OPERATIONS:
        uses = ", ".join(str(n in op.addresses).lower() for n in ("src1", "src2", "dst"))
        yield (
            f"    {{Opcode::k{camel(op.opcode.name)}, 0x{op.flag_mask:08x}, "
            f"{uses}, 0x{op.param_mask:02x}}},"
        )
    yield "}};"
    yield ""
    yield "/// (operand type, result type) that MATMUL accepts."
    yield (
        f"inline constexpr std::array<std::array<DType, 2>, {len(types.MATMUL_DTYPES)}> "
        "kMatmulDTypes{{"
    )
    for src, dst in types.MATMUL_DTYPES:
        yield f"    {{{{DType::k{camel(src.name)}, DType::k{camel(dst.name)}}}}},"
    yield "}};"
    yield ""
    for name, dtypes in (
        ("Index", types.INDEX_DTYPES),
        ("ScatterAdd", types.SCATTER_ADD_DTYPES),
    ):
        yield f"inline constexpr std::array<DType, {len(dtypes)}> k{name}DTypes{{"
        yield "    " + ", ".join(f"DType::k{camel(dtype.name)}" for dtype in dtypes) + "};"
        yield ""
    yield "/// Bytes of one element, indexed by DType."
    sizes = ", ".join(str(types.DTYPE_BYTES[dtype]) for dtype in types.DType)
    yield f"inline constexpr std::array<unsigned, {len(types.DType)}> kDTypeBytes{{{sizes}}};"
    yield ""
    yield "// Positions in Packet::param."
    for op in layout.OPERATIONS:
        for param, index in op.param_at.items():
            yield (f"inline constexpr unsigned k{camel(op.opcode.name)}{camel(param)} = {index};")
    yield ""


def _cpp() -> Iterable[str]:
    yield from cpp_head()
    yield f"inline constexpr std::uint32_t kVersion = 0x{types.ISA_VERSION:08X};"
    yield f"inline constexpr unsigned kMaxRank = {layout.MAX_RANK};"
    yield f"inline constexpr unsigned kWindowRank = {layout.WINDOW_RANK};"
    yield f"inline constexpr unsigned kWindowGroup = {layout.WINDOW_GROUP};"
    yield f"inline constexpr unsigned kInt4Rows = {types.INT4_ROWS};"
    yield f"inline constexpr unsigned kInt4FirstGroup = {types.INT4_GROUPS[0]};"
    yield f"inline constexpr unsigned kParamCount = {layout.PARAM_COUNT};"
    yield ""
    for name, enum in (
        ("Opcode", types.Opcode),
        ("DType", types.DType),
        ("ErrorCode", types.ErrorCode),
    ):
        yield from cpp_enum(name, enum)
    for name, size, fields in _STRUCTS:
        yield from _cpp_struct(name, size, fields)
    yield "// Bits of Packet::flags."
    for field in layout.FLAG_FIELDS:
        name = camel(field.name)
        yield f"inline constexpr std::uint32_t k{name}Mask = 0x{field.mask:08x};"
        yield f"inline constexpr unsigned k{name}Shift = {field.lsb};"
    yield ""
    yield from _cpp_operations()
    yield "}  // namespace npu::isa"


_EMITTERS: dict[str, Callable[[], Iterable[str]]] = {
    "rtl/pkg/npu_isa_pkg.sv": _sv,
    "golden/cmodel/npu_isa.h": _cpp,
    "docs/isa.md": markdown.page,
    "rtl/pkg/npu_vector_pkg.sv": generate_vector.sv,
    "golden/cmodel/npu_micro.h": generate_vector.cpp_micro,
    "docs/vector-programs.md": generate_vector.page,
}


def render() -> dict[str, str]:
    """Path from the project's root → text, for every generated file of the instruction set."""
    return {path: "\n".join(emit()) + "\n" for path, emit in _EMITTERS.items()}
