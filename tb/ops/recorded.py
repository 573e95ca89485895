# SPDX-License-Identifier: Apache-2.0
"""Proves an op of a capsule before it is run: a call that torch accepts, whose recorded results are
what torch answers. A content hash says that a capsule was not damaged, not that it is true.

Torch on another machine sums in another order, so values that differ are judged by the op's own
bound on torch (golden.bounds); an op without a rule by the loosest of torch's own
tolerances (torch.testing.assert_close). Results that torch draws at random are compared in size and
type only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from driver.capture import Capsule, Op, TensorRef, Value
from driver.capture.format import HOST_READ, MAX_BROADCAST
from driver.capture.single import overload
from driver.capture.tensors import ELEMENT_NAMES, TORCH_TYPES, as_tensor, to_torch
from driver.errors import InputError
from golden.calls import OpCall, Result, torch_answers
from golden.formats import Mask
from golden.judge import expectations, supports
from golden.recorded import judge_record
from golden.tensors import values_of

Tensor = torch.Tensor
_REFUSALS = (
    *(RuntimeError, TypeError, ValueError, IndexError, KeyError, OverflowError, MemoryError),
    *(AttributeError, NotImplementedError),
)
"""What torch raises for a call that it does not accept."""
_RTOL, _ATOL = 1.6e-2, 1e-5
"""torch.testing's for bfloat16."""


def prove(capsule: Capsule, op: Op) -> None:
    """Raise InputError when the op is no call of torch's, or its recorded results are not its
    answers."""
    field = f"ops[{op.index}] {op.op}"
    _check_arguments(capsule, op, field)
    _check_sizes(capsule, op, field)
    try:
        call = OpCall(
            op.op,
            tuple(to_torch(capsule, value) for value in op.inputs),
            {name: to_torch(capsule, value) for name, value in op.kwargs.items()},
        )
        found = torch_answers(call)
    except _REFUSALS as error:
        raise InputError(capsule.name, field, _brief(error), "a call torch accepts") from error
    returned = _returned(op, found)
    _check_shapes(capsule, op, field, returned)
    if capsule.document.device is not None:
        _check_as_judged(capsule, op, field)
        return
    if torch.Tag.nondeterministic_seeded in call.overload.tags:
        return
    for number, (answer, ref) in enumerate(zip(returned, op.outputs, strict=True)):
        if answer is not None and ref is not None:
            recorded = as_tensor(capsule, ref)
            if not _same_bits(recorded, answer):
                place = (capsule.name, f"{field}: outputs[{number}]")
                try:
                    _check_values(place, (call, found), number, recorded)
                except _REFUSALS as error:
                    expected = "arguments by which its results can be judged"
                    raise InputError(capsule.name, field, _brief(error), expected) from error


def _check_as_judged(capsule: Capsule, op: Op, field: str) -> None:
    """The results are an NPU's: the judge has to admit them. A read by the host is none."""
    verdict = None if op.op == HOST_READ else judge_record(capsule, op)
    if verdict is not None and (failure := verdict.wrong) is not None:
        value = f"{failure.actual!r} at {list(failure.element)} of outputs[{failure.output}]"
        raise InputError(capsule.name, field, value, f"{failure.expected!r}; {failure.detail}")


def prove_room(capsule: Capsule, op: Op) -> None:
    """Raise InputError unless the results of an op that only makes room are what captures fill such
    memory with. Those of a program on the NPU are what was there."""
    if capsule.document.device is not None:
        return
    before = torch.get_deterministic_debug_mode()
    torch.set_deterministic_debug_mode("warn")
    try:
        prove(capsule, op)
    finally:
        torch.set_deterministic_debug_mode(before)


def prove_view(capsule: Capsule, op: Op) -> None:
    """Raise InputError unless the op, which is said to move no data, is one of torch's views, and
    its results are the views of its operand that torch makes."""
    field = f"ops[{op.index}] {op.op}"
    given = {(ref.storage, ref.buffer) for ref in op.operands()}
    try:
        args = [_meta(capsule, value) for value in op.inputs]
        named = {name: _meta(capsule, value) for name, value in op.kwargs.items()}
        made = overload(op.op)(*args, **named)
    except _REFUSALS as error:
        raise InputError(capsule.name, field, _brief(error), "a view that torch makes") from error
    outputs = made if isinstance(made, list | tuple) else (made,)
    held = {arg.untyped_storage()._cdata for arg in args if isinstance(arg, Tensor)}
    if len(outputs) != len(op.outputs):
        raise InputError(capsule.name, field, f"{len(op.outputs)} outputs", f"{len(outputs)}")
    for number, (view, ref) in enumerate(zip(outputs, op.outputs, strict=True)):
        if not isinstance(view, Tensor) or view.untyped_storage()._cdata not in held:
            raise InputError(capsule.name, f"{field}: view", "true", "false: torch computes it")
        sizes, strides = tuple(view.shape), tuple(view.stride())
        wanted = (ELEMENT_NAMES[view.dtype], sizes, strides, int(view.storage_offset()))
        found = None if ref is None else (ref.dtype, ref.sizes, ref.strides, ref.offset)
        if found != wanted or ref is None or (ref.storage, ref.buffer) not in given:
            where = "" if ref is None or (ref.storage, ref.buffer) in given else " of other bytes"
            got, expected = f"{found}{where}", f"{wanted} of its operand's bytes"
            raise InputError(capsule.name, f"{field}: outputs[{number}]", got, expected)


def _returned(op: Op, found: tuple[Result, ...]) -> tuple[Result, ...]:
    """What the op returns, of answers that may hold what it writes to its arguments as well. An op
    that returns nothing is recorded with one result that is no tensor."""
    returns = overload(op.op)._schema.returns
    if not returns:
        return (None,)
    return found[: len(returns)] if len(returns) == len(op.outputs) else found


def _check_arguments(capsule: Capsule, op: Op, field: str) -> None:
    """The arguments are those of the op's schema, each once."""
    arguments = overload(op.op)._schema.arguments
    positional = [argument.name for argument in arguments if not argument.kwarg_only]
    if len(op.inputs) > len(positional):
        value = f"{len(op.inputs)} positional arguments"
        raise InputError(capsule.name, field, value, f"at most {len(positional)}")
    given = [*positional[: len(op.inputs)], *op.kwargs]
    known = [argument.name for argument in arguments]
    for name in given:
        if given.count(name) > 1 or name not in known:
            raise InputError(capsule.name, field, f"argument {name}", f"{', '.join(known)}, once")
    for argument in arguments:
        if argument.name not in given and not argument.has_default_value():
            raise InputError(capsule.name, field, "nothing", f"an argument {argument.name}")


def _check_sizes(capsule: Capsule, op: Op, field: str) -> None:
    """Ask torch's shape functions, which compute nothing, for the size of the results: a broadcast
    of a few bytes can ask for more than there is memory.

    They are not always what the CPU's own kernel returns: only the size is taken from them.
    """
    try:
        schema = overload(op.op)._schema
        args = [_meta(capsule, value) for value in op.inputs]
        named = {name: _meta(capsule, value) for name, value in op.kwargs.items()}
        if any(argument.name == "device" for argument in schema.arguments):
            named["device"] = torch.device("meta")
        made = overload(op.op)(*args, **named)
    except _REFUSALS:
        return  # no shape function, or no such call: torch itself will tell
    recorded = sum(ref.numel for ref in op.outputs if ref is not None)
    outputs = made if isinstance(made, list | tuple) else (made,)
    elements = sum(item.numel() for item in outputs if isinstance(item, Tensor))
    if elements > max(recorded, MAX_BROADCAST):
        value = f"results of {recorded} elements"
        raise InputError(capsule.name, field, value, f"{elements}, which torch computes")


def _meta(capsule: Capsule, value: Value) -> Any:
    """The argument with tensors that have sizes, strides and offset, and no memory."""
    if isinstance(value, tuple):
        return [_meta(capsule, item) for item in value]
    if isinstance(value, TensorRef):
        size = _size_of(capsule, value) // value.element_bytes
        whole = torch.empty(size, dtype=TORCH_TYPES[value.dtype], device="meta")
        return whole.as_strided(value.sizes, value.strides, value.offset)
    return to_torch(capsule, value)


def _check_shapes(capsule: Capsule, op: Op, field: str, found: Sequence[Result]) -> None:
    if len(found) != len(op.outputs):
        raise InputError(capsule.name, field, f"{len(op.outputs)} outputs", f"{len(found)}")
    for number, (answer, ref) in enumerate(zip(found, op.outputs, strict=True)):
        recorded = None if ref is None else (ref.dtype, list(ref.sizes))
        wanted = None
        if answer is not None:
            dtype = str(answer.dtype).removeprefix("torch.")
            wanted = (dtype, list(answer.shape))
        if ref is not None and ref.numel * ref.element_bytes > _size_of(capsule, ref):
            where = f"{field}: outputs[{number}]"
            raise InputError(capsule.name, where, "elements that overlap", "one place for each")
        if recorded != wanted:
            where = f"{field}: outputs[{number}]"
            raise InputError(capsule.name, where, _text(recorded), _text(wanted))


def _size_of(capsule: Capsule, ref: TensorRef) -> int:
    return capsule.document.storages[ref.storage].size_bytes


def _text(result: tuple[str, list[int]] | None) -> str:
    return "no tensor" if result is None else f"{result[0]} {result[1]}"


def _same_bits(recorded: Tensor, answer: Tensor) -> bool:
    if torch.equal(recorded, answer):
        return True
    if not recorded.is_floating_point():
        return False
    both_nan = recorded.isnan() & answer.isnan()
    return bool((both_nan | (recorded == answer)).all())


def _check_values(
    place: tuple[str, str], asked: tuple[OpCall, tuple[Result, ...]], number: int, recorded: Tensor
) -> None:
    """`place`: file and field of an error. `asked`: the call and torch's answers."""
    answer = asked[1][number]
    assert answer is not None
    wrong = ~_admitted(*asked, recorded, number).reshape(tuple(answer.shape))
    if wrong.any():
        index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
        count = int(np.count_nonzero(wrong))
        value = f"{recorded[index].item()} at {list(index)}, {count} elements differ"
        raise InputError(*place, value, f"{answer[index].item()}, torch's own answer")


def _admitted(call: OpCall, found: tuple[Result, ...], recorded: Tensor, number: int) -> Mask:
    """Which elements torch may have computed, on whatever machine."""
    answer = found[number]
    assert answer is not None
    if not recorded.is_floating_point():
        return np.asarray((recorded == answer).numpy())
    values = values_of(recorded)
    if supports(call.op):
        expectation = expectations(call, found)[number]
        if expectation is not None:
            return np.asarray(expectation.torch.admits(values))
    return np.asarray(torch.isclose(recorded, answer, rtol=_RTOL, atol=_ATOL, equal_nan=True))


def _brief(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
