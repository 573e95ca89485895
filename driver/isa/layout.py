# SPDX-License-Identifier: Apache-2.0
"""Byte layouts declared as tables: packet, descriptor, completion record; what opcodes use.

Every emitter (SystemVerilog, C++, Markdown) and the Python codecs read these tables; no offset
is written elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from driver.isa.types import Opcode

PACKET_BYTES = 64
DESCRIPTOR_BYTES = 64
WINDOW_BYTES = 128
COMPLETION_BYTES = 64
MAX_RANK = 5
WINDOW_RANK = 7
"""In place of a rank, it marks a window descriptor; also the number of its dimensions."""
WINDOW_GROUP = 3
"""Dimensions of a window's rows, and of its columns."""
PARAM_COUNT = 8


@dataclass(frozen=True)
class Field:
    """`count` little-endian unsigned words of `bits` bits at byte `offset`."""

    name: str
    offset: int
    bits: int
    text: str
    count: int = 1


@dataclass(frozen=True)
class BitField:
    """Bits [lsb + width - 1 : lsb] of a 32-bit word."""

    name: str
    lsb: int
    width: int
    text: str

    @property
    def mask(self) -> int:
        """The field's bits, in place."""
        return ((1 << self.width) - 1) << self.lsb


PACKET_FIELDS: tuple[Field, ...] = (
    Field("opcode", 0, 32, "what to do"),
    Field("flags", 4, 32, "types and modifiers, see Flags"),
    Field("src1", 8, 64, "first source: address of dense data, or of a descriptor"),
    Field("src2", 16, 64, "second source, likewise"),
    Field("dst", 24, 64, "destination, likewise"),
    Field("param", 32, 32, "per opcode, see Operations", PARAM_COUNT),
)

DESCRIPTOR_FIELDS: tuple[Field, ...] = (
    Field("base", 0, 64, "byte address of element [0, …, 0]"),
    Field("dtype", 8, 32, "element type; equals the packet's"),
    Field("rank", 12, 32, "number of dimensions, 1 to 5"),
    Field("size", 16, 32, "elements per dimension, outermost first; 0 beyond the rank", MAX_RANK),
    Field("stride", 36, 32, "step in elements; 0 repeats (broadcast); 0 beyond the rank", MAX_RANK),
    Field("reserved", 56, 64, "zero"),
)

WINDOW_FIELDS: tuple[Field, ...] = (
    Field("base", 0, 64, "byte address of element [0, …, 0]"),
    Field("dtype", 8, 32, "element type; equals the packet's"),
    Field("rank", 12, 32, "7: marks a window descriptor"),
    Field(
        "size",
        16,
        32,
        "elements: batch, 3 of the row, 3 of the column, outermost first",
        WINDOW_RANK,
    ),
    Field("reserved", 44, 32, "zero", 5),
    Field("stride", 64, 32, "step in elements, likewise; 0 repeats", WINDOW_RANK),
    Field("reserved_end", 92, 32, "zero", 9),
)

COMPLETION_FIELDS: tuple[Field, ...] = (
    Field("seq", 0, 32, "number of the command in its queue since reset"),
    Field("status", 4, 32, "error code, 0 when the command finished"),
    Field("start_cycle", 8, 64, "cycle in which it started, or in which its checks failed"),
    Field("end_cycle", 16, 64, "cycle in which it ended, soon after its last acknowledge"),
    Field("active_cycles", 24, 32, "cycles in which its engine did useful work"),
    Field("operand_stall", 28, 32, "cycles its engine waited for operands"),
    Field("result_stall", 32, 32, "cycles its engine waited to put results away"),
    Field("read_beats", 36, 32, "beats that its engine read on m_axi"),
    Field("write_beats", 40, 32, "beats that its engine wrote on m_axi"),
    Field("opcode", 44, 32, "opcode word of the packet; 0 when it could not be read"),
    Field("engine_wait", 48, 32, "cycles it was ready to start but its engine was busy"),
    Field(
        "operand_wait",
        52,
        32,
        "cycles it waited for memory of an earlier command, or for its end",
    ),
    Field(
        "waited_for",
        56,
        32,
        "seq of that command, in the last of these cycles; 0 without any",
    ),
    Field("waited_queue", 60, 32, "queue of that command, 0 or 1"),
)

COMPLETION_TIMING_RANGES = (range(8, 44), range(48, 64))
COMPLETION_TIMING_BYTES = frozenset(at for part in COMPLETION_TIMING_RANGES for at in part)
"""Bytes of a completion record that depend on timing; a functional model leaves them zero."""

FLAG_FIELDS: tuple[BitField, ...] = (
    BitField("SRC_DTYPE", 0, 4, "element type of the sources; VECTOR, GATHER, SCATTER: of src1"),
    BitField("DST_DTYPE", 4, 4, "element type of the destination"),
    BitField("TRANS_A", 8, 1, "src1 is stored transposed: [batch, K, M]"),
    BitField("TRANS_B", 9, 1, "src2 is stored transposed: [batch, N, K]"),
    BitField(
        "ACCUMULATE",
        10,
        1,
        "MATMUL: start each sum from the destination's old value, or with SRC3_DESC from src3, "
        "instead of +0; SCATTER: add to the destination instead of replacing",
    ),
    BitField("SRC3_DESC", 11, 1, "src3 is the address of a descriptor"),
    BitField("SRC1_DESC", 12, 1, "src1 is the address of a descriptor"),
    BitField("SRC2_DESC", 13, 1, "src2 is the address of a descriptor"),
    BitField("DST_DESC", 14, 1, "dst is the address of a descriptor"),
    BitField(
        "IRQ",
        15,
        1,
        "raise IRQ_STATUS.complete, or complete1, when the command finishes without an error",
    ),
    BitField("SRC2_DTYPE", 16, 4, "VECTOR: element type of src2; GATHER, SCATTER: of the indices"),
    BitField("SRC3_DTYPE", 20, 4, "VECTOR: element type of src3"),
    BitField(
        "OPERAND_LIST", 24, 1, "VECTOR: src1 is the address of descriptors of all its operands"
    ),
    BitField(
        "INT4_GROUP",
        25,
        4,
        "MATMUL: when not 0, src2 holds weights of four bits, and src3 a scale for every "
        "2^INT4_GROUP rows of each column",
    ),
)
FLAGS: dict[str, BitField] = {field.name: field for field in FLAG_FIELDS}


@dataclass(frozen=True)
class Operation:
    """One opcode: which flags, addresses and parameters it uses. All others must be zero."""

    opcode: Opcode
    flags: tuple[str, ...]
    addresses: tuple[str, ...]
    params: tuple[str, ...]
    """By position; "" for one between them that is not used."""
    text: str

    @property
    def flag_mask(self) -> int:
        """The flag bits that this opcode may set."""
        return sum(FLAGS[name].mask for name in self.flags)

    @property
    def param_mask(self) -> int:
        """Bit i: parameter i is used."""
        return sum(1 << index for index, name in enumerate(self.params) if name)

    @property
    def param_at(self) -> dict[str, int]:
        """Name of each parameter that is used, and its number."""
        return {name: index for index, name in enumerate(self.params) if name}


OPERATIONS: tuple[Operation, ...] = (
    Operation(Opcode.NOP, ("IRQ",), (), (), "Does nothing, and completes."),
    Operation(
        Opcode.MATMUL,
        (
            *("SRC_DTYPE", "DST_DTYPE", "TRANS_A", "TRANS_B", "ACCUMULATE"),
            *("SRC1_DESC", "SRC2_DESC", "SRC3_DESC", "DST_DESC", "INT4_GROUP", "IRQ"),
        ),
        ("src1", "src2", "dst"),
        ("m", "k", "n", "batch", "", "", "src3_low", "src3_high"),
        "dst[b,i,j] = convert(fma chain over k of src1[b,i,k]·src2[b,k,j]); with ACCUMULATE from "
        "dst[b,i,j] on, with SRC3_DESC from src3[b,i,j] on.",
    ),
    Operation(
        Opcode.VECTOR,
        (
            *("SRC_DTYPE", "DST_DTYPE", "SRC2_DTYPE", "SRC3_DTYPE"),
            *("SRC1_DESC", "SRC2_DESC", "SRC3_DESC", "DST_DESC", "OPERAND_LIST", "IRQ"),
        ),
        ("src1", "src2", "dst"),
        ("program", "count", "imm0", "imm1", "imm2", "imm3", "src3_low", "src3_high"),
        "dst[i] = program(src1[i], src2[i], src3[i], imm), or its reduction over the innermost "
        "dimension. See below.",
    ),
    Operation(
        Opcode.COPY,
        ("SRC_DTYPE", "DST_DTYPE", "SRC1_DESC", "DST_DESC", "IRQ"),
        ("src1", "dst"),
        ("count",),
        "Copies elements without a change of bits: `count` elements when neither side is a "
        "descriptor; else `count` is 0 and the descriptor gives the shape.",
    ),
    Operation(
        Opcode.FILL,
        ("DST_DTYPE", "DST_DESC", "IRQ"),
        ("dst",),
        ("count", "value"),
        "Writes `value` to every element. `count` as for COPY; bits of `value` above the "
        "element's width must be zero. Not for INT64.",
    ),
    Operation(
        Opcode.GATHER,
        (
            *("SRC_DTYPE", "DST_DTYPE", "SRC2_DTYPE"),
            *("SRC1_DESC", "SRC2_DESC", "DST_DESC", "IRQ"),
        ),
        ("src1", "src2", "dst"),
        ("dim",),
        "dst[i] = src1[i with i[dim] replaced by src2[i]]. All three are descriptors of one rank; "
        "src2 has dst's sizes, src1 as well except in dimension `dim`.",
    ),
    Operation(
        Opcode.SCATTER,
        (
            *("SRC_DTYPE", "DST_DTYPE", "SRC2_DTYPE", "ACCUMULATE"),
            *("SRC1_DESC", "SRC2_DESC", "DST_DESC", "IRQ"),
        ),
        ("src1", "src2", "dst"),
        ("dim",),
        "dst[i with i[dim] replaced by src2[i]] = src1[i], or += with ACCUMULATE, for i in "
        "row-major order: at equal places the last element remains. All three are descriptors of "
        "one rank; src2 has src1's sizes, dst as well except in dimension `dim`.",
    ),
    Operation(Opcode.FENCE, ("IRQ",), (), (), "Completes when every earlier command is completed."),
    Operation(
        Opcode.SYNC,
        ("IRQ",),
        ("dst",),
        ("value",),
        "A FENCE that then writes the 32-bit word `value` to dst (4-byte aligned).",
    ),
    Operation(
        Opcode.LOAD,
        ("IRQ",),
        ("src1",),
        ("line", "lines"),
        "Program memory from line `line` on = the program image of `lines` lines at src1. See "
        "below.",
    ),
)
OPERATION_OF: dict[Opcode, Operation] = {operation.opcode: operation for operation in OPERATIONS}

CHECK_ORDER: tuple[str, ...] = (
    "BUS_READ when the packet cannot be read: its record has opcode 0, and it raises no IRQ. Then "
    "BAD_OPCODE: the opcode has no entry under Operations.",
    "RESERVED_BITS: a flag, address or parameter that the opcode does not use is not zero, or "
    "FILL's value has bits above the element's width (for an element type that exists). MATMUL "
    "without INT4_GROUP: SRC3_DESC without ACCUMULATE, src3_low or src3_high without SRC3_DESC. "
    "VECTOR: with OPERAND_LIST a DTYPE or other DESC flag, src2 or dst; without, a DTYPE, DESC "
    "flag, address or parameter of a source that the program does not have, if it is loaded.",
    "BAD_DTYPE: a type number that does not exist; a MATMUL pair that is not listed, or INT8 with "
    "INT4_GROUP; COPY, GATHER or SCATTER between different types; FILL of INT64; indices that are "
    "not INT32 or INT64; SCATTER with ACCUMULATE in INT8, UINT8 or INT64.",
    "BAD_PARAM: m, k, n, batch zero; INT4_GROUP 1 or 2; count zero without a descriptor, or not "
    "zero with one. VECTOR: first NOT_LOADED when no program begins at line `program`. Then "
    "BAD_PARAM: with OPERAND_LIST, count not zero; without, a program of four sources or of "
    "several results; count zero and an operand that is no descriptor; count not zero and one "
    "that is, or a program that reduces. GATHER, SCATTER: an operand that is no descriptor, or "
    "dim above 4. LOAD: lines 0 or above the longest image, or a line that is not loadable.",
    "For each operand in the order src1, src2, src3, dst (COPY from direct data to a descriptor: "
    "dst, then src1, which has dst's shape). If it is a descriptor: MISALIGNED when its address "
    "is no multiple of 64, OUT_OF_RANGE when its 64 bytes are not all in memory, BUS_READ when "
    "reading it fails, then BAD_DESCRIPTOR: reserved or unused words not zero, rank outside 1…5, "
    "a size of zero, a type or shape that contradicts the packet (COPY: dst against src1; VECTOR: "
    "rank and sizes against the first source, a reduction's dst having size 1 in the innermost "
    "dimension; GATHER, SCATTER: as under Operations against src1, and dim not below the rank), "
    "dst with stride 0 where the size is above 1. Then, descriptor or not: MISALIGNED when the "
    "base is no multiple of the element size, OUT_OF_RANGE when first or last byte is not in "
    "memory (computed without wrapping), or a dense operand needs a stride of 2³² elements or "
    "more. All checks of one operand come before those of the next. A MATMUL descriptor of rank 7 "
    "is a window: after its first 64 bytes, OUT_OF_RANGE when its second 64 bytes are not all in "
    "memory, BUS_READ when reading them fails, then BAD_DESCRIPTOR: reserved words not zero, a "
    "size of zero, a type that is not the packet's, a batch, product of row sizes or product of "
    "column sizes that is not the packet's (computed without wrapping), TRANS_A for src1 or "
    "TRANS_B for src2, dst with stride 0 where the size is above 1. Rank 7 with another opcode is "
    "a rank outside 1…5. OPERAND_LIST: MISALIGNED when src1 is no multiple of 64, then the "
    "operands in the order of the list, each as a descriptor; a type that does not exist is "
    "BAD_DESCRIPTOR. LOAD: src1 MISALIGNED unless a multiple of 64, OUT_OF_RANGE unless all bytes "
    "of the image are in memory.",
    "LOAD, when all commands before it have finished: BUS_READ when reading any line of the image "
    "fails, then BAD_IMAGE when it is malformed (Program image).",
)
