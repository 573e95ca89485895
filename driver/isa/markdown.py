# SPDX-License-Identifier: Apache-2.0
"""The reference page of the instruction set, docs/isa.md, from the tables."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from driver.isa import image, layout, micro, types
from driver.isa.programs import BOOT_IMAGE
from driver.isa.tables import TABLE_COLUMNS, TABLES

NOTICE = "Generated from driver/isa by `make gen`. Do not edit."
_WIDTH = 100

_OPERANDS = """
A direct operand (its DESC flag clear) is dense, row-major, of the operation's shape: MATMUL src1
[batch, M, K] (TRANS_A: [batch, K, M]), src2 [batch, K, N] (TRANS_B: [batch, N, K]), dst [batch,
M, N]. A MATMUL descriptor has rank 3 and that same stored shape, with any strides. With
SRC3_DESC, which needs ACCUMULATE, MATMUL's sums start from a third source instead of dst:
`src3_low` + 2³² · `src3_high` is the address of its descriptor, of dst's type and [batch, M, N].
COPY with one descriptor: the direct side is dense with the descriptor's sizes. A destination that
overlaps a source, or itself, gives undefined data. The exception is VECTOR without reduction: its
dst may be a source, element for element at the same addresses.
"""

_WINDOW = """
An operand of MATMUL, src3 included, may be a window: its DESC flag is set, and its descriptor has
rank 7 and 128 bytes. A window's rows and columns have three dimensions each, with a size and a
stride of their own: row r is read as three indices in mixed radix, the last of them fastest, and
columns alike. Element (b, r, c) lies at `base` + (b·stride[0] + Σ index·stride of the row + Σ
index·stride of the column) elements. size[0] is the packet's batch. The product of the row's sizes
is M (src1, src3, dst) or K (src2), that of the column's sizes K (src1) or N (src2, src3, dst); with
INT4_GROUP the rows of src2 and src3 are those of the words and of the scales, and src2's type is
INT32. Each operand has its own factors: src1's K may have three dimensions while src2's K has one.
A window is never transposed: TRANS_A and TRANS_B of the operand are 0. Sources may overlap
themselves, as the windows of a convolution do. Unused dimensions have size 1. ACCUMULATE reads dst
through its window.
"""

_INT4 = """
With INT4_GROUP = g, 3 to 15, MATMUL's second factor is of weights of four bits with scales. src2
has ⌈K ÷ 8⌉ rows of INT32 words in place of its K rows of elements: bits 4j to 4j + 3 of word
[b, i, c] are the weight of row 8i + j of column c, as a number from 0 to 15 that stands for −8 to
7. Weights of rows beyond K are not used. src3 is then not where the sums start but the scales:
SRC_DTYPE, [batch, ⌈K ÷ 2^g⌉, N], a row of scales for 2^g rows of weights; direct, or with SRC3_DESC
a descriptor. ACCUMULATE reads dst. The weights that the product sees are of SRC_DTYPE:
[numerics.md](numerics.md#matmul).
"""

_VECTOR = """
VECTOR runs one of the [vector programs](vector-programs.md) on every element: the one that begins
at line `program` of program memory. A program with n sources, 0 to 3, uses the first n of src1,
src2 and src3; src3's address is `src3_low` + 2³² · `src3_high`. With `count` all operands are
direct and dense, of `count` elements. Without, all are descriptors of the same rank and sizes;
strides of 0 repeat a source. A program that reduces takes descriptors only, and its dst has size 1
in the innermost dimension, where the sources' elements are reduced. Sources may be of any type:
FP16 and BF16 are widened, INT8 extends its sign, UINT8 is extended by zeros, FP32 and INT32 are
taken as they are, INT64 gives its low word. The result's 32 bits are stored as they are (FP32,
INT32), narrowed (FP16, BF16), cut to the low byte (INT8, UINT8) or extended in sign (INT64).
imm{plain_imms} to imm{last_imm} are 0.
"""

_LIST = """
With OPERAND_LIST src1 is the address of an operand list: descriptors one behind the other, of the
program's sources first, then of its results. Types come from the descriptors; the DTYPE fields, the
other DESC flags, src2, dst and `count` are zero, and param 2 to 7 are imm0 to imm5. Only so can a
program have {sources} sources, {results} results or use imm{plain_imms} and imm{last_imm}. All
operands have the rank and sizes of the first source, without sources of the first result; a
reduction's result has size 1 in the innermost dimension. Results must not overlap each other.
Each may be a source, element for element at the same addresses.
"""

_LOAD = """
The vector engine's program memory has lines of {line_bytes} bytes. Lines 0 to {boot_last} are
read-only and hold the programs of [vector-programs.md](vector-programs.md); lines {ram_first} to
{ram_last} can be loaded. LOAD copies the image of one program from src1 to the lines from `line`
on. It runs in the vector engine, in order: it never meets a program that runs, and the checks of
the next command wait until it has finished. A program of which a LOAD overwrites any line is no
longer loaded. Reset and CTRL.soft_reset forget all loaded programs; CTRL.error_ack does not. A
LOAD that fails leaves program memory as it is. One exception: the image is read twice, to check it
and to store it. What fails in the second reading, by a bus error or because the image has changed
in between, leaves its lines not loaded.
"""

_IMAGE = """
The image is a sequence of 64-bit words, little endian, and ends with its last line.
"""

_CODES = """
Operand codes: 0 to 15 a register, {src} to {src_last} src1 to src{sources}, {index} the index,
{imm} to {imm_last} imm0 to imm{last_imm}, {table} to {table_last} columns 0 to {last_column} of the
element's row of a table, {const} to {const_last} the program's constants. Codes of destinations: 0
to 15 a register, {dst} to {dst_last} result 1 to {results}. Byte b of SEGMENT is no operand but the
number of a [table](vector-programs.md#tables), 0 to {tables_last}. An image is malformed
unless all of this holds: the header's numbers are within their limits, and `lines` is exactly what
they need; `reduce` is not 0 only with one result and at least one source; every op exists; a
destination is a register or one of the program's results; every result is written once, and the
last instruction writes one; an operand that the instruction has is a register that an earlier
instruction has written, a source or a constant that the program has, the index, an immediate, or a
column that the table of the last SEGMENT before it has; at most one operand of an instruction is a
column; the table of a SEGMENT exists; an operand that an instruction does not have is 0; everything
called zero is zero.
"""

_RECORD = """
Written at CPL_BASE + (seq mod entries)·64, or CPL1_BASE for the second queue, after the last write
of the command, and of all before it in its queue, is acknowledged, for failed commands too. Head,
COMPLETED and interrupt of the queue follow its own acknowledgement. A functional model leaves bytes
{bytes} zero: they depend on timing.

`active_cycles` counts, of COPY and FILL, cycles in which a beat of the destination was put
together; of MATMUL, steps of the array: b·m·⌈n/array⌉·⌈k/array⌉; of VECTOR, instructions issued,
each for as many elements as there are lanes; of GATHER and SCATTER, cycles in which a part of a
row was moved, at most a beat; of LOAD, words of 64 bits, 8 of each line in each of its two
readings.

`operand_wait` counts what a command waits for besides its engine: ranges of memory that overlap,
and order, as of FENCE, SYNC, LOAD and everything behind GATHER and SCATTER. Where it waits for two
commands at once, `waited_for` names the one of its own queue.
"""

_OVERLAP = """
Commands start in the order of their packets and are completed in that order; in between they run
at the same time where they can. While commands run, the next packet is fetched and checked. It
starts when its engine is free and when no unfinished command writes a byte that it reads or
writes, or reads a byte that it writes. The bytes of an operand are all from its first to its last
one, gaps included. A descriptor is not read while an unfinished command may write it. So memory is
as if one command ran at a time. This does not hold for packets and completion records: a command
must not write a packet that is queued, and must not have an operand in the records. COPY and FILL
share an engine that runs two of them at a time; the other engines run one command.

NOP starts in its turn like any other. FENCE, SYNC and LOAD start when everything before them is
completed. Behind GATHER and SCATTER, whose indices may be wrong, nothing starts before they have
finished; behind LOAD nothing is checked before.
"""

_QUEUES = """
There are two queues: the first ring with the queue behind CMD_PUSH, and the second ring (RING1_…).
What this page says of order holds within a queue; each has its own sequence numbers, completion
records, COMPLETED register and interrupts. Where both have a packet they take turns, packet by
packet. A packet that waits for its start does not keep the other queue's from being checked and
started; of two that wait for the same engine alone the one that was taken first starts first. So
neither queue starves. Four things hold up the other queue: a LOAD, once it is taken, waits until
all that was taken before is completed, in both queues, and nothing is taken until it has ended; a
packet whose descriptor an unfinished command may write, until it can be read; a SYNC while it
writes its word; and writes, which leave in the order in which they were granted, behind a write
whose data come slowly: up to a page of a COPY whose source is strided, element by element.

Between commands of different queues there is no order but this: of two that were taken, the one
that was taken later waits if their bytes overlap as above, so that no byte is read or written
half way through a command. Which one is taken first is not defined. FENCE and SYNC wait for their
own queue alone. Software that passes data from one queue to the other waits for the completion of
the command that writes it, in COMPLETED, its completion record or by an interrupt, before it rings
the doorbell for the command that reads it. Program memory is shared: the same holds for a LOAD and
a VECTOR of the other queue that names its lines.
"""

_ORDER = """
Checks run in this order and the first that fails is reported; nothing of a command is written
before all its checks have passed:
"""

_RECOVERY = """
Nothing behind a command that fails its checks, or by an index, has started. A bus error during
execution leaves the command's destination unspecified; nothing starts once that command has ended,
and the destinations of commands behind it that started before are unspecified as well. Memory fails
by aligned lines of 64 bytes: whether a command fails that has an operand in the other bytes of a
line is not defined. Commands behind the failed one are not reported: the first that failed is, when
all before it are completed and all behind it have ended. Both queues then stop in state ERROR. When
a command of one queue fails, nothing of the other one starts any more; what has started is finished
and completed before the error is reported. Of several faults that one command meets while it runs,
bus errors of both kinds and an index, one is reported, and which one is not defined. A completion
record that cannot be written is the BUS_WRITE of a command that had no error; one that has failed
keeps its own. If one of each queue has failed, that of the first queue is reported, and the other
queue's is not completed: its number is given again. CTRL.error_ack drops all that is queued (the
heads take the values of the tails) and returns to IDLE; sequence numbers continue. CTRL.soft_reset
clears everything and restarts them at 0.
"""


def page() -> Iterable[str]:
    """The lines of docs/isa.md."""
    yield f"<!-- {NOTICE} -->"
    yield "# Instruction set"
    yield ""
    yield from paragraph(
        f"Version {types.ISA_VERSION >> 16}.{types.ISA_VERSION & 0xFFFF}. Arithmetic: "
        "[numerics.md](numerics.md). Registers: [registers.md](registers.md). All addresses are "
        "physical byte addresses."
    )
    yield from _struct("Packet", layout.PACKET_BYTES, layout.PACKET_FIELDS)
    yield from _flags()
    yield from _operations()
    yield from _struct("Tensor descriptor", layout.DESCRIPTOR_BYTES, layout.DESCRIPTOR_FIELDS)
    yield from paragraph("Descriptors, of tensors and of windows, lie on multiples of 64 bytes.")
    yield from _struct("Window descriptor", layout.WINDOW_BYTES, layout.WINDOW_FIELDS)
    yield from paragraph(_WINDOW)
    yield "## Order and overlap"
    yield ""
    for text in _OVERLAP.strip().split("\n\n"):
        yield from paragraph(text)
    yield "## Two queues"
    yield ""
    for text in _QUEUES.strip().split("\n\n"):
        yield from paragraph(text)
    yield from _struct("Completion record", layout.COMPLETION_BYTES, layout.COMPLETION_FIELDS)
    timing = (f"{part.start} to {part.stop - 1}" for part in layout.COMPLETION_TIMING_RANGES)
    yield from paragraph(_RECORD.format(bytes=" and ".join(timing)))
    yield "## Data types"
    yield ""
    rows = ((str(d.value), d.name, str(size)) for d, size in types.DTYPE_BYTES.items())
    yield from table(("number", "type", "bytes"), rows)
    yield from _errors()


def paragraph(text: str) -> Iterable[str]:
    """The text in lines of the page's width, and an empty one."""
    yield from textwrap.wrap(" ".join(text.split()), _WIDTH)
    yield ""


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterable[str]:
    """The lines of a Markdown table, and an empty one."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _struct(title: str, size: int, fields: tuple[layout.Field, ...]) -> Iterable[str]:
    yield f"## {title}: {size} bytes, little endian"
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
    yield from table(("byte", "field", "type", "meaning"), rows)


def _flags() -> Iterable[str]:
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
    yield from table(("bits", "flag", "meaning"), rows)


def _operations() -> Iterable[str]:
    yield "## Operations"
    yield ""
    yield from paragraph(
        "Flags, addresses and parameters that an opcode does not use must be zero."
    )
    rows = (
        (
            f"{op.opcode.value} {op.opcode.name}",
            ", ".join(op.flags) or "none",
            ", ".join(op.addresses) or "none",
            ", ".join(f"{i} {name}" for name, i in op.param_at.items()) or "none",
            op.text,
        )
        for op in layout.OPERATIONS
    )
    yield from table(("opcode", "flags", "addresses", "param", "effect"), rows)
    pairs = ", ".join(f"{src.name}→{dst.name}" for src, dst in types.MATMUL_DTYPES)
    yield from paragraph(
        f"MATMUL's pairs of operand and result type: {pairs}. ACCUMULATE reads dst in its type."
    )
    yield from paragraph(_OPERANDS)
    yield from paragraph(_INT4)
    for text in (_VECTOR, _LIST):
        yield from paragraph(text.format(**_NUMBERS))
    yield from _program_memory()


_NUMBERS = {
    "boot_last": len(BOOT_IMAGE) // image.LINE_BYTES - 1,
    "line_bytes": image.LINE_BYTES,
    "ram_first": image.PROGRAM_RAM,
    "ram_last": image.PROGRAM_RAM + image.PROGRAM_RAM_LINES - 1,
    "max_lines": image.MAX_LINES,
    "sources": micro.MAX_SOURCES,
    "results": micro.MAX_RESULTS,
    "plain_imms": micro.PLAIN_IMMEDIATES,
    "last_imm": micro.IMMEDIATES - 1,
    "src": micro.OPERAND_SRC,
    "src_last": micro.OPERAND_SRC + micro.MAX_SOURCES - 1,
    "index": micro.OPERAND_INDEX,
    "imm": micro.OPERAND_IMM,
    "imm_last": micro.OPERAND_IMM + micro.IMMEDIATES - 1,
    "const": micro.OPERAND_CONST,
    "const_last": micro.OPERAND_CONST + micro.MAX_CONSTANTS - 1,
    "table": micro.OPERAND_TABLE,
    "table_last": micro.OPERAND_TABLE + TABLE_COLUMNS - 1,
    "last_column": TABLE_COLUMNS - 1,
    "tables_last": len(TABLES) - 1,
    "dst": micro.DST_RESULT,
    "dst_last": micro.DST_RESULT + micro.MAX_RESULTS - 1,
}


def _program_memory() -> Iterable[str]:
    yield "### Program image"
    yield ""
    yield from paragraph(_LOAD.format(**_NUMBERS))
    yield from paragraph(_IMAGE)
    limits = (
        f"byte 0 `instructions`, 1 to {micro.MAX_INSTRUCTIONS}; 1 `constants`, 0 to "
        f"{micro.MAX_CONSTANTS}; 2 `sources`, 0 to {micro.MAX_SOURCES}; 3 `results`, 1 to "
        f"{micro.MAX_RESULTS}; 4 `reduce`, 0 to {len(micro.Reduce) - 1}; 5 zero; 6 and 7 "
        f"{image.MAGIC:#06x}"
    )
    kinds = ", ".join(f"{kind.value} {kind.name}" for kind in micro.Reduce)
    rows = (
        ("0", "header", f"{limits}. Reductions: {kinds}"),
        (
            "1 to I",
            "instructions",
            "byte 0 op; 1 destination; 2, 3, 4 operands a, b, c; 5 to 7 zero",
        ),
        ("from I + 1 on", "constants", "two per word, the first in the low half"),
        (
            "to the end of the line",
            "padding",
            f"zero. The longest image has {image.MAX_LINES} lines",
        ),
    )
    yield from table(("words", "content", ""), rows)
    yield from paragraph(_CODES.format(**_NUMBERS))
    ops = ", ".join(f"{op.value} {op.name}" for op in micro.MicroOp)
    yield from paragraph(f"Instructions: {ops}.")


def _errors() -> Iterable[str]:
    yield "## Errors"
    yield ""
    rows = ((str(code.value), f"`{code.name}`", text) for code, text in types.ERROR_TEXT.items())
    yield from table(("code", "name", "meaning"), rows)
    yield from paragraph(_ORDER)
    for number, text in enumerate(layout.CHECK_ORDER, 1):
        yield f"{number}. {text}"
    yield ""
    yield from textwrap.wrap(" ".join(_RECOVERY.split()), _WIDTH)
