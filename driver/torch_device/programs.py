# SPDX-License-Identifier: Apache-2.0
"""Programs by signature: a row called again with tensors of the same shapes is not lowered again.

The signature holds all that decides the packets: row, types, sizes, strides, every other argument,
and which tensors begin at the same byte. A program has no addresses, so they are not part of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from driver.compile import fused_program, written_buffers
from driver.config import HwConfig
from driver.isa import Opcode, Packet
from driver.isa.micro import Reduce
from driver.lower import LOWERINGS, Arg, lower
from driver.random_stream import RandomStream
from driver.runtime import Buffer, Program, TensorView
from driver.runtime.vector_programs import named_by
from driver.torch_device import _core
from driver.torch_device.lru_cache import LruCache

Results = Sequence[TensorView | None]
_REPLAYED_BYTES = 64 << 10


class RowCall(NamedTuple):
    """A row of the op table with the arguments and results of one call."""

    row: str
    args: Sequence[Arg]
    kwargs: Mapping[str, Arg]
    results: Results
    stream: RandomStream | None = None


@dataclass(frozen=True)
class RememberedProgram:
    """A program, and how the tensors of a call are its operands."""

    program: Program
    queued: _core.Program
    """The same for the queue, with the row's name."""
    begins: tuple[int, ...]
    """For each operand of the program, the tensor of the call that begins it."""
    shapes: tuple[TensorView, ...]
    """The tensors, arguments before results, on buffers of the program."""
    extents: tuple[int, ...]
    """Their bytes, from the first to the last."""
    arguments: int
    """How many of them are arguments."""
    may_write_to_operands: bool
    """Whether results may be operands, where a tensor of the call is both."""
    seed: int | None
    """Of a random op: that of the generator which the program is for."""
    is_numbered: bool
    """Whether one more operand has the number of the random op for an address."""
    is_replayed: bool
    """Whether the core may keep it for equal calls: not one that would take much memory there."""

    def writes_safely(self, addresses: Sequence[int]) -> bool:
        """Whether the packets are right for tensors at these addresses.

        They are when no result shares bytes with an operand, or is one and the packets allow that.
        """
        for result in range(self.arguments, len(addresses)):
            begin, extent = addresses[result], self.extents[result]
            for operand in range(self.arguments):
                other = addresses[operand]
                if other >= begin + extent or begin >= other + self.extents[operand]:
                    continue
                if not self.may_share(result, operand):
                    return False
        return True

    def may_share(self, result: int, operand: int) -> bool:
        """Whether a result and an operand, by their numbers, may be one."""
        return self.may_write_to_operands and self.shapes[operand] == self.shapes[result]


class ProgramCache:
    """The programs of one device's configuration."""

    def __init__(self, config: HwConfig) -> None:
        self._config = config
        self._known: LruCache[object, RememberedProgram] = LruCache()
        self._seen: LruCache[int, bool] = LruCache()

    def find(self, call: RowCall) -> tuple[RememberedProgram, list[int]]:
        """The program for such a call, and the addresses of the call's tensors.

        UnsupportedOp when the NPU cannot run it.
        """
        row, args, kwargs, results, stream = call
        tensors: list[TensorView] = []
        given = tuple([_signature(value, tensors) for value in args])
        named = tuple([(name, _signature(value, tensors)) for name, value in kwargs.items()])
        arguments = len(tensors)
        wanted = tuple([_signature(view, tensors) for view in results])
        addresses = [tensor.offset_bytes for tensor in tensors]
        same = tuple([addresses.index(address) for address in addresses])
        key = (row, given, named, wanted, same, None if stream is None else stream.seed)
        found = self._known.get(key)
        if found is None:
            kept = self._is_worth_keeping(call, key)
            found = self._lowered(call, _on_buffers(tensors, same), arguments, kept)
            if kept:
                self._known.put(key, found, 2 * found.program.image.nbytes)  # the queue's, too
        return found, addresses

    def _is_worth_keeping(self, call: RowCall, key: object) -> bool:
        """A call with a number only when it comes again: optimizers have new ones at every step."""
        if not any(isinstance(value, float) for value in (*call.args, *call.kwargs.values())):
            return True
        again = self._seen.get(hash(key)) is not None
        self._seen.put(hash(key), True)
        return again

    def _lowered(
        self, call: RowCall, shapes: tuple[TensorView, ...], arguments: int, kept: bool
    ) -> RememberedProgram:
        row, args, kwargs, results, stream = call
        replaced = iter(shapes)
        given = [_replaced(value, replaced) for value in args]
        named = {name: _replaced(value, replaced) for name, value in kwargs.items()}
        outputs = [None if view is None else next(replaced) for view in results]
        number = Buffer(0, name="op number")
        if stream is not None:
            stream = replace(stream, op=0)
        lowered = lower(row, given, named, outputs, self._config, stream, op_number=number)
        program = fused_program(lowered, self._config)
        buffers = [shape.buffer for shape in shapes]
        into = written_buffers(program)
        written = [at for at, buffer in enumerate(program.operands) if buffer in into]
        is_numbered = number in program.operands
        return RememberedProgram(
            program=program,
            queued=_queued(row, program, written, is_numbered),
            begins=tuple(buffers.index(b) for b in program.operands if b is not number),
            seed=None if stream is None else stream.seed,
            is_numbered=is_numbered,
            shapes=shapes,
            extents=tuple(shape.extent_bytes for shape in shapes),
            arguments=arguments,
            may_write_to_operands=_is_single_pass(lowered)
            or _is_in_place(row, args, shapes[:arguments], shapes[arguments:]),
            is_replayed=kept and program.image.nbytes <= _REPLAYED_BYTES,
        )


def _queued(row: str, program: Program, written: list[int], is_numbered: bool) -> _core.Program:
    """`written`: the operands that it writes to. `is_numbered`: the last one is a number."""
    sections = [
        (part.size_bytes, -1 if part.content is None else part.content) for part in program.sections
    ]
    return _core.program(
        row,
        len(program.operands),
        written,
        is_numbered,
        program.packet_count,
        program.image,
        program.relocations.words,
        program.relocations.symbols,
        sections,
    )


def _signature(value: Arg, tensors: list[TensorView]) -> object:
    """What of an argument decides the packets; its tensors are added to `tensors`."""
    if isinstance(value, TensorView):
        tensors.append(value)
        return value.dtype, value.sizes, value.strides, value.boolean
    if isinstance(value, tuple | list):
        return tuple([_signature(item, tensors) for item in value])
    return type(value), value or repr(value)  # 1, 1.0 and True differ, and so do 0.0 and -0.0


def _on_buffers(tensors: Sequence[TensorView], same: Sequence[int]) -> tuple[TensorView, ...]:
    """The tensors at the beginning of buffers, in one buffer if they begin at the same byte."""
    buffers: dict[int, Buffer] = {}
    for tensor, first in zip(tensors, same, strict=True):
        known = buffers.get(first)
        size_bytes = max(tensor.extent_bytes, known.size_bytes if known else 0)
        buffers[first] = Buffer(size_bytes)
    return tuple(
        replace(tensor, buffer=buffers[first], offset_bytes=0)
        for tensor, first in zip(tensors, same, strict=True)
    )


def _replaced(value: Arg, tensors: Iterator[TensorView]) -> Arg:
    """The argument with its tensors replaced by the next ones."""
    if isinstance(value, TensorView):
        return next(tensors)
    if isinstance(value, tuple | list):
        return tuple(_replaced(item, tensors) for item in value)
    return value


def _is_in_place(
    row: str,
    args: Sequence[Arg],
    operands: Sequence[TensorView],
    results: Sequence[TensorView],
) -> bool:
    """Whether a row is written for results that are operands, and each is that operand alone.

    A row that has a form in place (aten.add.Tensor: aten.add_.Tensor) is, for its first operand; a
    row with several results that is in place itself, for those that its schema says.
    """
    space, name, overload = row.split(".")
    if f"{space}.{name.removesuffix('_')}_.{overload}" not in LOWERINGS:
        return False
    if name.endswith("_") and len(results) > 1:
        return all(operands.count(result) <= 1 for result in results)
    begins = bool(args) and isinstance(args[0], TensorView)
    return begins and not set(operands[1:]) & set(results)


def _is_single_pass(program: Program) -> bool:
    """Whether every element is read before the same one is written.

    docs/isa.md allows that for VECTOR without reduction; anything else gives undefined data.
    """
    return len(program.packets) <= 1 and all(map(_keeps_elements_apart, program.packets))


def _keeps_elements_apart(packet: Packet) -> bool:
    found = named_by(packet.params[0]) if packet.opcode == Opcode.VECTOR else None
    return found is not None and found.reduce is Reduce.NONE
