# SPDX-License-Identifier: Apache-2.0
"""Emits the vector programs: boot image in SystemVerilog, instructions in C++, reference page."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence

from driver.isa import image, micro
from driver.isa.emit import camel, cpp_enum, cpp_head, sv_enum
from driver.isa.markdown import NOTICE, paragraph, table
from driver.isa.micro import Instruction, MicroOp, Reduce, VectorProgram
from driver.isa.programs import BOOT_DIGEST, BOOT_IMAGE, FAMILIES, LINES, PROGRAMS
from driver.isa.tables import TABLE_COLUMNS, TABLE_ROW, TABLE_ROWS, TABLES, Table

_INTRODUCTION = """
These programs are in program memory after a reset. The parameter `program` of VECTOR is the line at
which a program begins, the number in the first column; others can be
[loaded](isa.md#program-image). A program runs once per element; `src1` to `src4` are the operands'
elements, `imm0` to `imm5` words of the packet, `index` the position in the innermost dimension. A
program that reduces gives one element per innermost row. What each instruction computes, and how a
row is reduced, is in [numerics.md](numerics.md); programs are declared in `driver/isa/programs`.
"""

_TABLES = """
SEGMENT names a table; `t0` to `t7` are then columns of the element's row. Segment 0 begins at 0;
beyond the end is the last segment. Polynomials are in |a| − m, coefficients from the constant on.
What SEGMENT does is in [numerics.md](numerics.md#tables); tables are declared in
`driver/isa/tables`, and `tests/table_fits.py` derives their words.
"""

_REDUCE_BITS = 3

_CODES: tuple[tuple[str, int], ...] = (
    ("REGISTERS", micro.REGISTERS),
    ("IMMEDIATES", micro.IMMEDIATES),
    ("MAX_SOURCES", micro.MAX_SOURCES),
    ("REDUCTION_LANES", micro.REDUCTION_LANES),
    ("OPERAND_SRC", micro.OPERAND_SRC),
    ("OPERAND_INDEX", micro.OPERAND_INDEX),
    ("OPERAND_IMM", micro.OPERAND_IMM),
    ("OPERAND_TABLE", micro.OPERAND_TABLE),
    ("OPERAND_CONST", micro.OPERAND_CONST),
    ("DST_RESULT", micro.DST_RESULT),
    ("PLAIN_IMMEDIATES", micro.PLAIN_IMMEDIATES),
    ("PLAIN_SOURCES", micro.PLAIN_SOURCES),
    ("MAX_RESULTS", micro.MAX_RESULTS),
    ("MAX_INSTRUCTIONS", micro.MAX_INSTRUCTIONS),
    ("MAX_CONSTANTS", micro.MAX_CONSTANTS),
    ("LINE_WORDS", image.LINE_WORDS),
    ("PROGRAM_MAGIC", image.MAGIC),
    ("PROGRAM_MAX_LINES", image.MAX_LINES),
    ("PROGRAM_RAM", image.PROGRAM_RAM),
    ("PROGRAM_RAM_LINES", image.PROGRAM_RAM_LINES),
    ("BOOT_LINES", len(BOOT_IMAGE) // image.LINE_BYTES),
    ("TABLES", len(TABLES)),
    ("TABLE_COLUMNS", TABLE_COLUMNS),
    ("TABLE_ROWS", TABLE_ROWS),
)
_HEADER_FIELDS = ("instructions", "constants", "sources", "results", "reduce", "zero")
_INSTRUCTION_FIELDS = ("op", "dst", "a", "b", "c")


def operand_text(code: int, constants: tuple[int, ...]) -> str:
    """An operand code as the reference page shows it; constants by their word."""
    if code < micro.REGISTERS:
        return f"r{code}"
    if code < micro.OPERAND_INDEX:
        return f"src{code - micro.OPERAND_SRC + 1}"
    if code == micro.OPERAND_INDEX:
        return "index"
    if code < micro.OPERAND_IMM + micro.IMMEDIATES:
        return f"imm{code - micro.OPERAND_IMM}"
    if code < micro.OPERAND_CONST:
        return f"t{code - micro.OPERAND_TABLE}"
    return f"{constants[code - micro.OPERAND_CONST]:08x}"


def instruction_text(line: Instruction, program: VectorProgram) -> str:
    """An instruction of the program as the reference page shows it."""
    operands = ", ".join(operand_text(code, program.constants) for code in line.operands)
    dst = f"r{line.dst}"
    if line.dst >= micro.DST_RESULT:
        dst = "out" if program.results == 1 else f"out{line.dst - micro.DST_RESULT + 1}"
    of_table = f" in {TABLES[line.b].name}" if line.op is MicroOp.SEGMENT else ""
    return f"{dst} = {line.op.name} {operands}{of_table}"


def _sv_image_words() -> Iterable[str]:
    """What the words of an image are; a packed struct lists its most significant member first."""
    yield "  /// Word 0 of a program's image."
    yield "  typedef struct packed {"
    yield "    logic [15:0] magic;"
    yield from (f"    logic [7:0] {name};" for name in reversed(_HEADER_FIELDS))
    yield "  } program_header_t;"
    yield ""
    yield "  /// An instruction of a program's image."
    yield "  typedef struct packed {"
    yield "    logic [23:0] zero;"
    yield from (f"    logic [7:0] {name};" for name in reversed(_INSTRUCTION_FIELDS))
    yield "  } program_instruction_t;"
    yield ""
    yield "  /// Operands that an instruction has; 0 for one that does not exist."
    yield "  function automatic logic [1:0] micro_operands(logic [7:0] op);"
    yield "    unique case (op)"
    for op, info in micro.MICRO_INFO.items():
        yield f"      8'd{op.value}: return 2'd{info.operands};  // {op.name}"
    yield "      default: return '0;"
    yield "    endcase"
    yield "  endfunction"
    yield ""
    yield f"  localparam int unsigned MICRO_OPS = {len(MicroOp)};"
    yield f"  localparam int unsigned REDUCTIONS = {len(Reduce)};"
    yield ""


def _sv_boot() -> Iterable[str]:
    """The boot image: words, digest, and the lines at which programs begin."""
    words = struct.unpack(f"<{len(BOOT_IMAGE) // 8}Q", BOOT_IMAGE)
    starts = sum(1 << line for line in LINES.values())
    yield "  /// First 8 bytes of SHA-256 over the boot programs and the tables, little endian."
    yield f"  localparam logic [63:0] PROGRAM_DIGEST = 64'h{BOOT_DIGEST:016x};"
    yield "  /// Bit i: a program begins at line i."
    yield f"  localparam logic [BOOT_LINES-1:0] BOOT_STARTS = {len(BOOT_IMAGE) // 64}'h{starts:x};"
    yield "  localparam logic [63:0] BOOT_IMAGE [BOOT_LINES*LINE_WORDS] = '{"
    rows = [words[at : at + 4] for at in range(0, len(words), 4)]
    yield ",\n".join("    " + ", ".join(f"64'h{word:016x}" for word in row) for row in rows)
    yield "  };"


_TABLE_FIELDS: tuple[tuple[str, int, str, Callable[[int, Table], int]], ...] = (
    ("FIRST", 32, "Where segment 1 begins, less 2^shift; bits.", lambda n, t: t.first),
    ("LIMIT", 32, "Bits of the last number of the last segment.", lambda n, t: t.limit),
    ("SHIFT", 5, "Bits of a number within its segment.", lambda n, t: t.shift),
    ("LAST", 8, "Number of the last segment.", lambda n, t: t.last),
    ("ROW", 9, "Row of segment 0 in TABLE_ROM.", lambda n, t: TABLE_ROW[n]),
    ("USED", 4, "Columns that the table has.", lambda n, t: t.columns),
    ("ODD", 8, "Bit c: column c is odd.", lambda n, t: t.odd_mask),
)  # fmt: skip
"""What the packages say of each table, by its number: name, bits, meaning, value."""


def _table_words() -> list[int]:
    """The words of all rows, columns that a table lacks 0."""
    rows = [row for table in TABLES for row in table.rows]
    return [word for row in rows for word in (*row, *[0] * (TABLE_COLUMNS - len(row)))]


def _sv_tables() -> Iterable[str]:
    for name, bits, text, value in _TABLE_FIELDS:
        entries = ", ".join(f"{bits}'h{value(n, table):x}" for n, table in enumerate(TABLES))
        yield f"  /// By table: {text}"
        yield f"  localparam logic [{bits - 1}:0] TABLE_{name} [TABLES] = '{{{entries}}};"
    yield "  /// Row by row; columns that a table lacks are 0."
    yield "  localparam logic [31:0] TABLE_ROM [TABLE_ROWS*TABLE_COLUMNS] = '{"
    words = _table_words()
    rows = [words[at : at + TABLE_COLUMNS] for at in range(0, len(words), TABLE_COLUMNS)]
    yield ",\n".join("    " + ", ".join(f"32'h{word:08x}" for word in row) for row in rows)
    yield "  };"


def _cpp_tables() -> Iterable[str]:
    for name, _, text, value in _TABLE_FIELDS:
        words = [value(n, table) for n, table in enumerate(TABLES)]
        yield f"/// By table: {text}"
        yield from _cpp_array("kTables", f"kTable{camel(name)}", words)
    yield "/// Row by row; columns that a table lacks are 0."
    yield from _cpp_array("kTableRows * kTableColumns", "kTableWords", _table_words())
    yield ""


def _cpp_array(size: str, name: str, words: Sequence[int]) -> Iterable[str]:
    yield f"inline constexpr std::array<std::uint32_t, {size}> {name}{{"
    for at in range(0, len(words), TABLE_COLUMNS):
        yield "  " + ", ".join(f"0x{word:08x}" for word in words[at : at + TABLE_COLUMNS]) + ","
    yield "};"


def sv() -> Iterable[str]:
    """The lines of rtl/pkg/npu_vector_pkg.sv."""
    yield "// SPDX-License-Identifier: Apache-2.0"
    yield f"// {NOTICE}"
    yield "/// Instructions of the vector engine and the programs made of them; see"
    yield "/// docs/vector-programs.md."
    yield "package npu_vector_pkg;"
    for name, value in _CODES:
        yield f"  localparam int unsigned {name} = {value};"
    yield ""
    yield from sv_enum("micro_op", micro.OP_BITS, MicroOp, "MICRO")
    yield from sv_enum("reduce", _REDUCE_BITS, Reduce)
    yield "  typedef struct packed {"
    yield "    micro_op_e op;"
    yield f"    logic [{micro.DST_BITS - 1}:0] dst;"
    for name in "abc":
        yield f"    logic [{micro.OPERAND_BITS - 1}:0] {name};"
    yield "  } instruction_t;"
    yield ""
    yield from _sv_image_words()
    yield "  /// Where every lane of a reduction starts."
    yield "  function automatic logic [31:0] reduce_identity(reduce_e reduce);"
    yield "    unique case (reduce)"
    for kind, word in micro.REDUCE_IDENTITY.items():
        yield f"      REDUCE_{kind.name}: return 32'h{word:08x};"
    yield "      default: return '0;"
    yield "    endcase"
    yield "  endfunction"
    yield ""
    yield from _sv_tables()
    yield ""
    yield from _sv_boot()
    yield "endpackage"


def cpp_micro() -> Iterable[str]:
    """The lines of golden/cmodel/npu_micro.h: what the model is built with."""
    yield from cpp_head()
    for name, value in _CODES:
        yield f"inline constexpr unsigned k{camel(name)} = {value};"
    yield ""
    yield from cpp_enum("MicroOp", MicroOp, 8)
    yield from cpp_enum("Reduce", Reduce, 8)
    yield "struct Instruction {"
    yield "  MicroOp op;"
    yield "  std::uint8_t dst, a, b, c;"
    yield "};"
    yield ""
    yield "/// Operands that an instruction has, indexed by MicroOp."
    counts = ", ".join(str(info.operands) for info in micro.MICRO_INFO.values())
    yield f"inline constexpr std::array<unsigned, {len(MicroOp)}> kMicroOperands{{{counts}}};"
    yield ""
    yield "/// Where every lane of a reduction starts, indexed by Reduce."
    identities = ", ".join(f"0x{word:08x}" for word in micro.REDUCE_IDENTITY.values())
    count = len(micro.REDUCE_IDENTITY)
    yield f"inline constexpr std::array<std::uint32_t, {count}> kIdentity{{{identities}}};"
    yield ""
    yield from _cpp_tables()
    yield "}  // namespace npu::isa"


def page() -> Iterable[str]:
    """The lines of docs/vector-programs.md."""
    yield f"<!-- {NOTICE} -->"
    yield "# Vector programs"
    yield ""
    yield from paragraph(_INTRODUCTION)
    for family in FAMILIES:
        title = family.FAMILY.name.replace("_", " ")
        yield f"## {title.capitalize()}"
        yield ""
        rows = (
            (
                f"{LINES[p.name]} `{p.name}`",
                p.text.replace("|", "\\|"),
                ", ".join(f"{i} {name}" for i, name in enumerate(p.imms)) or "none",
                "" if p.reduce is Reduce.NONE else p.reduce.name,
                str(len(p.code)),
            )
            for p in PROGRAMS.values()
            if p.family == family.FAMILY.name
        )
        yield from table(("program", "result", "imm", "reduction", "instructions"), rows)
    yield "## Instructions"
    yield ""
    meanings = ((f"`{op.name}`", info.text) for op, info in micro.MICRO_INFO.items())
    yield from table(("instruction", "result"), meanings)
    yield "## Tables"
    yield ""
    yield from paragraph(_TABLES)
    heads = ("table", "columns", "segments", "segment 1 from", "bits of a segment", "end", "odd")
    entries = (
        (
            f"{n} `{one.name}`",
            one.text.replace("|", "\\|"),
            str(len(one.rows)),
            f"{one.first + (1 << one.shift):08x}",
            str(one.shift),
            f"{one.limit:08x}",
            ", ".join(map(str, one.odd)) or "none",
        )
        for n, one in enumerate(TABLES)
    )
    yield from table(heads, entries)
    yield "## Listing"
    yield ""
    yield "```"
    for p in PROGRAMS.values():
        yield f"{LINES[p.name]} {p.name}"
        yield from (f"  {instruction_text(line, p)}" for line in p.code)
    yield "```"
