# SPDX-License-Identifier: Apache-2.0
"""Emits the vector programs: ROM in SystemVerilog, instructions in C++, the reference page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from driver.isa import micro
from driver.isa.emit import camel, cpp_enum, cpp_head, sv_enum
from driver.isa.markdown import NOTICE, paragraph, table
from driver.isa.micro import Instruction, MicroOp, Reduce, VectorProgram
from driver.isa.programs import CONSTANTS, FAMILIES, PROGRAMS

_INTRODUCTION = """
The parameter `program` of VECTOR selects one of these programs. A program runs once per element;
`src1` to `src3` are the operands' elements, `imm0` to `imm3` words of the packet, `index` the
position in the innermost dimension. A program that reduces gives one element per innermost row.
What each instruction computes, and how a row is reduced, is in [numerics.md](numerics.md);
programs are declared in `driver/isa/programs`.
"""

_WORD_BITS = micro.OP_BITS + micro.DST_BITS + 3 * micro.OPERAND_BITS
_START_BITS, _LENGTH_BITS, _SOURCES_BITS, _REDUCE_BITS = 16, 8, 2, 3

_CODES: tuple[tuple[str, int], ...] = (
    ("REGISTERS", micro.REGISTERS),
    ("IMMEDIATES", micro.IMMEDIATES),
    ("MAX_SOURCES", micro.MAX_SOURCES),
    ("REDUCTION_LANES", micro.REDUCTION_LANES),
    ("OPERAND_SRC", micro.OPERAND_SRC),
    ("OPERAND_INDEX", micro.OPERAND_INDEX),
    ("OPERAND_IMM", micro.OPERAND_IMM),
    ("OPERAND_CONST", micro.OPERAND_CONST),
    ("DST_OUT", micro.DST_OUT),
)


def _word(line: Instruction) -> int:
    """An instruction as the ROM holds it: op in the upper bits, then dst, a, b, c."""
    value = line.op << micro.DST_BITS | line.dst
    for operand in (line.a, line.b, line.c):
        value = value << micro.OPERAND_BITS | operand
    return value


def _starts() -> Iterator[tuple[VectorProgram, int]]:
    """Every program with the place of its first instruction."""
    at = 0
    for program in PROGRAMS.values():
        yield program, at
        at += len(program.code)


def operand_text(code: int) -> str:
    """An operand code as the reference page shows it."""
    if code < micro.REGISTERS:
        return f"r{code}"
    if code < micro.OPERAND_INDEX:
        return f"src{code - micro.OPERAND_SRC + 1}"
    if code == micro.OPERAND_INDEX:
        return "index"
    if code < micro.OPERAND_IMM + micro.IMMEDIATES:
        return f"imm{code - micro.OPERAND_IMM}"
    return f"{CONSTANTS[code - micro.OPERAND_CONST]:08x}"


def instruction_text(line: Instruction) -> str:
    """An instruction as the reference page shows it."""
    count = micro.MICRO_INFO[line.op].operands
    operands = ", ".join(operand_text(code) for code in (line.a, line.b, line.c)[:count])
    dst = "out" if line.dst == micro.DST_OUT else f"r{line.dst}"
    return f"{dst} = {line.op.name} {operands}"


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
    yield "  typedef struct packed {"
    yield f"    logic [{_START_BITS - 1}:0] start;"
    yield f"    logic [{_LENGTH_BITS - 1}:0] length;"
    yield f"    logic [{_SOURCES_BITS - 1}:0] sources;"
    yield "    reduce_e reduce;"
    yield "  } program_t;"
    yield ""
    yield "  /// Where every lane of a reduction starts."
    yield "  function automatic logic [31:0] reduce_identity(reduce_e reduce);"
    yield "    unique case (reduce)"
    for kind, word in micro.REDUCE_IDENTITY.items():
        yield f"      REDUCE_{kind.name}: return 32'h{word:08x};"
    yield "      default: return '0;"
    yield "    endcase"
    yield "  endfunction"
    yield ""
    yield f"  localparam int unsigned PROGRAM_COUNT = {len(PROGRAMS)};"
    yield "  localparam program_t PROGRAMS [PROGRAM_COUNT] = '{"
    yield ",\n".join(
        f"    /* {p.number} {p.name} */ '{{{_START_BITS}'d{start}, {_LENGTH_BITS}'d{len(p.code)}, "
        f"{_SOURCES_BITS}'d{p.sources}, REDUCE_{p.reduce.name}}}"
        for p, start in _starts()
    )
    yield "  };"
    yield ""
    yield f"  localparam int unsigned CODE_COUNT = {sum(len(p.code) for p in PROGRAMS.values())};"
    yield "  localparam instruction_t CODE [CODE_COUNT] = '{"
    words = [_word(line) for p in PROGRAMS.values() for line in p.code]
    yield ",\n".join(f"    {_WORD_BITS}'h{word:09x}" for word in words)
    yield "  };"
    yield ""
    yield f"  localparam int unsigned CONSTANT_COUNT = {len(CONSTANTS)};"
    yield "  localparam logic [31:0] CONSTANTS [CONSTANT_COUNT] = '{"
    yield ",\n".join(f"    32'h{word:08x}" for word in CONSTANTS)
    yield "  };"
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
    yield "/// Where every lane of a reduction starts, indexed by Reduce."
    identities = ", ".join(f"0x{word:08x}" for word in micro.REDUCE_IDENTITY.values())
    count = len(micro.REDUCE_IDENTITY)
    yield f"inline constexpr std::array<std::uint32_t, {count}> kIdentity{{{identities}}};"
    yield ""
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
                f"{p.number} `{p.name}`",
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
    yield "## Listing"
    yield ""
    yield "```"
    for p in PROGRAMS.values():
        yield f"{p.number} {p.name}"
        yield from (f"  {instruction_text(line)}" for line in p.code)
    yield "```"
